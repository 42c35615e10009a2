"""For which processor a model that runs long is compiled."""

import pytest

from sim.build.guided import need_guidable
from sim.build.host import PORTABLE, this_host
from sim.errors import PlexusError


def test_portable_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLEXUS_PORTABLE", "1")
    assert this_host() is PORTABLE
    assert not PORTABLE.flags


@pytest.mark.parametrize("asked", ["", "0"])
def test_without_it_this_processor_has_a_key(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv("PLEXUS_PORTABLE", asked)
    host = this_host()
    assert host == PORTABLE or (host.key and "-march=native" in host.flags and "-ffp-contract=off" in host.flags)


@pytest.mark.parametrize("asked", ["yes", "2", "x86-64"])
def test_another_value_is_refused(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv("PLEXUS_PORTABLE", asked)
    with pytest.raises(PlexusError, match=f"PLEXUS_PORTABLE='{asked}'"):
        this_host()


def test_counts_are_those_of_gcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.build.guided.compiler_says", lambda *asked: "#define __GNUC__ 4\n#define __clang__ 1\n")
    with pytest.raises(PlexusError, match="g\\+\\+ only"):
        need_guidable()
