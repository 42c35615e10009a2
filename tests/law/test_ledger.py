"""The ledger of cycles, verif/plan/cycles.toml: every workload has a row, every row can be run and has figures."""

from pathlib import Path

import pytest

from firmware.workloads import WORKLOADS, find_workload
from rtl.contract.config import NAMED
from sim.listing import names_by_kind
from sim.systems.link.run import parse_link
from sim.systems.switch.params import parse_switch
from verif.checks.cycles import FABRIC, LEDGER, Entry, entries, exceptions, renewed

CONFIGS = ("tiny", "small")


def missing(path: Path = LEDGER) -> list[str]:
    """Workloads of `plexus list` without a row: in both configurations if they run on a core."""
    rows, without = {(e.section, e.workload) for e in entries(path)}, exceptions(path)
    wrong = []
    for name, _, _ in names_by_kind()["workloads"]:
        for section in CONFIGS if name in WORKLOADS else (FABRIC,):
            there, excused = (section, name) in rows, name in without.get(section, {})
            if there == excused:
                what = "a row, and a reason why there is none" if there else "neither a row nor a reason"
                wrong.append(f"{name} has {what} in [{section}] of {path.name}")
    return wrong


def test_every_workload_has_a_row() -> None:
    assert not missing(), "\n".join(missing())


def test_a_workload_without_a_row_is_noticed(tmp_path: Path) -> None:
    book = tmp_path / "cycles.toml"
    lines = LEDGER.read_text().splitlines(keepends=True)
    book.write_text("".join(line for line in lines if not line.startswith(('"transpose', '"link', "minilm = "))))
    found = missing(book)
    assert [text.split()[0] for text in found] == ["transpose", "transpose", "minilm", "link"]


@pytest.mark.parametrize("entry", entries(), ids=str)
def test_a_row_can_be_run(entry: Entry) -> None:
    params = entry.words[3::2] if entry.section == FABRIC else entry.words[5::2]
    assert entry.section == FABRIC or entry.section in NAMED
    parse = {"link": parse_link, "switch": parse_switch}.get(entry.workload)
    (parse or find_workload(entry.workload).parse)(params)
    assert entry.figures.get("cycles", 0) > 0, "no figures: python -m verif.checks.cycles --write"
    assert all(type(figure) is int for figure in entry.figures.values())


def test_writing_what_is_there_changes_nothing() -> None:
    figures = {(e.section, e.run): e.figures for e in entries()}
    assert renewed(LEDGER.read_text(), figures) == LEDGER.read_text()
