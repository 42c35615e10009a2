"""A function in a fork: its result, its error, its end, and that nothing of it stays behind."""

import gc
import os
import signal
import subprocess
import sys
import time

import pytest

from sim.build.in_fork import in_fork
from sim.errors import PlexusError


def _nothing() -> None:
    pass


def test_result_larger_than_a_pipe_holds() -> None:
    here = os.getpid()
    kept: list[int] = []

    def work() -> tuple[int, str]:
        kept.append(1)
        return os.getpid(), "x" * 3_000_000

    fork, text = in_fork(work, _nothing)
    assert fork != here and len(text) == 3_000_000 and kept == []


def test_its_error_is_ours() -> None:
    def work() -> None:
        raise PlexusError("vector.lanes is 3, but it divides 128")

    with pytest.raises(PlexusError, match="vector.lanes is 3"):
        in_fork(work, _nothing)


class _OfTwo(Exception):
    def __init__(self, one: int, two: int):
        super().__init__(f"{one} and {two}")


def _fails_below() -> None:
    raise ZeroDivisionError("lanes")


def test_an_unexpected_error_tells_where_it_came_from() -> None:
    with pytest.raises(ZeroDivisionError, match="lanes") as met:
        in_fork(_fails_below, _nothing)
    assert "_fails_below" in met.value.__notes__[0]


def test_an_error_that_cannot_travel_is_told() -> None:
    def work() -> None:
        raise _OfTwo(1, 2)

    with pytest.raises(RuntimeError, match="1 and 2"):
        in_fork(work, _nothing)


def test_killed() -> None:
    with pytest.raises(PlexusError, match="ended by signal 9"):
        in_fork(lambda: os.kill(os.getpid(), signal.SIGKILL), _nothing)


def test_ticks_and_collects_nothing() -> None:
    ticks: list[float] = []

    def work() -> bool:
        time.sleep(0.6)
        return gc.isenabled()

    assert in_fork(work, lambda: ticks.append(time.monotonic())) is False
    assert len(ticks) >= 1 and gc.isenabled()


def test_an_interrupt_here_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[int] = []
    fork = os.fork

    def noted() -> int:
        forks.append(fork())
        return forks[-1]

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fork", noted)
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        in_fork(lambda: time.sleep(60), interrupt)
    assert time.monotonic() - before < 30
    with pytest.raises(ChildProcessError):  # ended, and waited for
        os.waitpid(forks[0], os.WNOHANG)


_SECOND = """
import os, time
from pathlib import Path
from sim.build.children import run_child
from sim.build.in_fork import in_fork
with open(os.devnull, "w") as out:
    run_child(["true"], folder=Path("."), environment=os.environ, out=out, tick=lambda: None)

def work():
    print(os.getpid(), flush=True)
    time.sleep(60)

in_fork(work, lambda: None)
"""


def test_it_ends_with_a_killed_parent_that_had_children_before() -> None:
    """The shell that ends what a killed process leaves must not take the fork for one who can still write to it."""
    parent = subprocess.Popen([sys.executable, "-c", _SECOND], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    fork = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    for _ in range(100):
        try:
            os.kill(fork, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        os.kill(fork, signal.SIGKILL)
        pytest.fail("the fork outlived its parent by ten seconds")
