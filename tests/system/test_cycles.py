"""The ledger of cycles: runs take the cycles that verif/plan/cycles.toml says, and say match."""

import re
from pathlib import Path

import pytest

from sim.cli import main as plexus
from verif.checks.cycles import FABRIC, LEDGER, Entry, changes, entries, exceptions, main, measure

pytestmark = pytest.mark.sim

LONGEST = 20_000
"""Cycles, by the ledger, of a run that `make test` repeats; `make regress` does all."""
SHORT = [e for e in entries() if e.section in ("tiny", FABRIC) and e.figures.get("cycles", 0) <= LONGEST]


@pytest.mark.parametrize("entry", SHORT, ids=str)
def test_cycles_are_those_of_the_ledger(entry: Entry, tmp_path: Path) -> None:
    found = changes(entry, measure(entry, tmp_path))
    assert not found, "\n".join(["if it is meant: python -m verif.checks.cycles --write", *map(str, found)])


def test_a_changed_figure_is_noticed_and_renewed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = "dma rows=64 row_bytes=512"
    (entry,) = [e for e in entries() if (e.section, e.run) == ("tiny", run)]
    cycles, text = entry.figures["cycles"], LEDGER.read_text()
    row = f'"{run}" = {{ cycles = {cycles} }}\n'
    assert row in text.partition("[small]")[0]
    book = tmp_path / "cycles.toml"
    book.write_text(text.replace(row, row.replace(str(cycles), str(cycles + 10)), 1))
    asked = ["tiny", "--only", run, "--ledger", str(book)]
    assert main(asked) == 1
    out = capsys.readouterr().out
    ratio = f"{cycles / (cycles + 10):.4f} x"
    assert re.search(rf"{re.escape(run)} +cycles +{cycles + 10:,} -> +{cycles:,}  {ratio}", out), out
    assert main([*asked, "--write"]) == 0
    assert [e for e in entries(book) if e.section == "tiny"] == [e for e in entries() if e.section == "tiny"]
    assert main(asked) == 0


@pytest.mark.parametrize(("config", "workload"), [(c, w) for c, rows in exceptions().items() for w in rows])
def test_what_the_ledger_leaves_out_is_refused(
    config: str, workload: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plexus(["run", workload, "--config", config, "--out", str(tmp_path)]) == 2
    assert f"{workload} of this text does not fit the memories of {config}" in capsys.readouterr().err
