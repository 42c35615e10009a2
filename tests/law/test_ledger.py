"""The ledger of cycles, verif/plan/cycles.toml: every workload has a row, every row can be run and has figures."""

from pathlib import Path

import pytest

from sim.systems.registry import offers, system_of_workload
from sim.systems.system import Asked
from verif.checks.cycles import FABRIC, LEDGER, Entry, entries, exceptions, renewed


def missing(path: Path = LEDGER) -> list[str]:
    """Workloads of `plexus list` without a row, in every section where their system has its runs."""
    rows, without = {(e.section, e.workload) for e in entries(path)}, exceptions(path)
    wrong = []
    for name in offers():
        for section in system_of_workload(name).ledger_sections or (FABRIC,):
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
    config = None if entry.section == FABRIC else entry.section
    asked = Asked(workload=entry.workload, params=entry.params, config=config)
    assert system_of_workload(entry.workload).resolve(asked)
    assert entry.figures.get("cycles", 0) > 0, "no figures: python -m verif.checks.cycles --write"
    assert all(type(figure) is int for figure in entry.figures.values())


def test_writing_what_is_there_changes_nothing() -> None:
    figures = {(e.section, e.run): e.figures for e in entries()}
    assert renewed(LEDGER.read_text(), figures) == LEDGER.read_text()
