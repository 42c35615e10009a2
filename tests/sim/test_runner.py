"""The runner itself, on the smallest bench: what it refuses, and what it leaves."""

from pathlib import Path

import pytest

from rtl.contract.config import named
from sim.errors import PlexusError
from sim.run.runner import BenchError, run_bench
from verif.launch import must_notice

pytestmark = pytest.mark.sim


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """These ask for runs, not for verdicts, nor for coverage."""
    monkeypatch.setenv("FRESH", "1")
    monkeypatch.delenv("PLEXUS_COVERAGE", raising=False)


BENCH = "verif.benches.base.bench_fifo"
SHAPE = {"shape": 16, "depth": 4}


def test_filter_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(BenchError, match="no test ran in "):
        run_bench("fifo", BENCH, named("tiny"), planted=True, options=SHAPE, testcase="no_such_test")


def test_bench_that_cannot_be_imported_shows_why() -> None:
    with pytest.raises(BenchError, match=r"(?s)ended without a verdict.*ModuleNotFoundError.*log: "):
        run_bench("fifo", "verif.benches.base.bench_nothing", named("tiny"), planted=True, options=SHAPE)


def test_fault_that_is_not_noticed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blind = "import cocotb\n\n\n@cocotb.test()\nasync def looks_at_nothing(dut):\n    pass\n"
    (tmp_path / "blind_bench.py").write_text(blind)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BenchError, match=r"did not notice a planted fault of fifo \(a FIFO takes an entry when full\)"):
        must_notice("fifo", "blind_bench", "a FIFO takes an entry when full", options=SHAPE)


def test_fault_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PlexusError, match="^top fifo has no fault 'rust' to plant; there are: a FIFO reads the entry "):
        run_bench("fifo", BENCH, named("tiny"), plant="rust", options=SHAPE)


def test_run_leaves_its_evidence() -> None:
    verdict = run_bench("fifo", BENCH, named("tiny"), seed=5, planted=True, options=SHAPE)
    left = {p.name for p in verdict.folder.iterdir()}
    assert {"run.log", "results.xml", "manifest.json", "coverage-base.fifo.json"} <= left


def test_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    def times(seed: int) -> list[str]:
        verdict = run_bench("fifo", BENCH, named("tiny"), seed=seed, planted=True, options=SHAPE)
        text = (verdict.folder / "run.log").read_text()
        return [line.split()[0] for line in text.splitlines() if "PASS" in line or "passed" in line]

    assert times(5) == times(5) != times(6)


def test_waves_are_written(tmp_path: Path) -> None:
    file = tmp_path / "fifo.vcd"
    run_bench("fifo", BENCH, named("tiny"), options=SHAPE, waves=file).require()
    assert "$enddefinitions" in file.read_text()
