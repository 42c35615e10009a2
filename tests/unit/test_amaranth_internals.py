"""What is known of Amaranth's inside is as the installed Amaranth has it, and stands in one file."""

import re
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

import rtl
from rtl.base import amaranth_internals
from rtl.base.amaranth_internals import INTERNALS, VERSION, changes, counts_as_used, original, replaced

ROOT = Path(rtl.__file__).parents[1]
_PRIVATE = re.compile(
    r"^\s*(?:from|import) amaranth\S*\._|^\s*from amaranth\S* import .*\b_\w|_MustUse__|\b_?(?:nir|ir)\.Netlist"
)


class Unit(wiring.Component):
    """Nothing inside."""

    def __init__(self) -> None:
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        return Module()


def test_the_installed_amaranth_is_the_one_they_were_written_for() -> None:
    assert changes() == []


def test_the_version_is_the_one_that_is_pinned() -> None:
    assert f'"amaranth=={VERSION}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("place", [each.place for each in INTERNALS])
def test_what_an_upgrade_takes_away_is_named(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pieces that Amaranth's own file imports by name, Python says it before."""
    here = next(each for each in INTERNALS if each.place == place)
    monkeypatch.setattr(amaranth_internals, "INTERNALS", (here.__class__(f"{place}_gone", here.use, here.without),))
    (sentence,) = changes()
    assert f"has no {place}_gone; without it {here.without}" in sentence


def test_what_an_upgrade_writes_otherwise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with replaced({"Netlist.check_comb_cycles": lambda netlist: None}):
        (sentence,) = changes()
    assert "amaranth.hdl._nir:Netlist.check_comb_cycles" in sentence
    assert "reads otherwise" in sentence
    monkeypatch.setattr(amaranth_internals, "VERSION", "0.5.9")
    assert changes() == [f"Amaranth is {VERSION}; its internals were last read at 0.5.9"]


def test_every_replaced_function_has_its_text_noted() -> None:
    assert all(each.digest for each in INTERNALS if each.use.startswith("replaced"))


def test_functions_come_back_after_an_error() -> None:
    name = "Netlist.check_comb_cycles"
    here = next(each for each in INTERNALS if each.place.endswith(name))
    with pytest.raises(TypeError), replaced({name: print}):
        here.found()(flush=None, wrong=True)
    assert here.found() is original(name)


@pytest.mark.filterwarnings("error")
def test_a_component_that_counts_as_used_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    counts_as_used(Unit())
    assert not recwarn.list


def test_no_other_file_knows_the_inside_of_amaranth() -> None:
    own = Path(amaranth_internals.__file__)
    rooms = ("rtl", "firmware", "sim", "verif", "tests")
    found = [
        f"{file.relative_to(ROOT)}:{n}"
        for room in rooms
        for file in sorted((ROOT / room).rglob("*.py"))
        if file not in (own, Path(__file__))
        for n, line in enumerate(file.read_text().splitlines(), 1)
        if _PRIVATE.search(line)
    ]
    assert not found, f"use rtl/base/amaranth_internals.py: {', '.join(found)}"
