"""A verdict is kept with all that it depends on, and only one that was expected."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rtl.contract.config import named
from sim.run import runner, verdicts
from sim.run.runner import Verdict, run_bench
from sim.toolchain import ROOT

pytestmark = pytest.mark.sim

BENCH = "verif.benches.base.bench_fifo"
SHAPE = {"shape": 16, "depth": 4}
FULL = "a FIFO takes an entry when full"
NEXT = "a FIFO reads the entry after the next one"
CHECKED = """
import cocotb

@cocotb.test()
async def a_test(dut):
    assert {truth}
"""


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that a simulator was asked for; no verdict is there at the beginning."""
    asked: list[str] = []
    real = runner.bench_process
    for name in ("FRESH", "CI", "PLEXUS_TOGGLES", "PLEXUS_COVERAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(verdicts, "_shelf", lambda: tmp_path / "verdicts")
    monkeypatch.setattr(runner, "bench_process", lambda *a: (asked.append(a[1]), real(*a))[1])
    return asked


def fifo(**more: object) -> Verdict:
    return run_bench("fifo", BENCH, named("tiny"), options=SHAPE, planted=True, **more)


def test_a_kept_verdict_is_the_verdict(starts: list[str]) -> None:
    for more in ({"seed": 2}, {"plant": FULL}):
        starts.clear()
        first = fifo(**more)
        log = (first.folder / "run.log").read_text()
        since = (first.folder / "results.xml").stat().st_mtime
        again = fifo(**more)
        assert starts == [BENCH] and again == first
        assert (again.folder / "run.log").read_text() == log and (again.folder / "manifest.json").exists()
        assert (again.folder / "results.xml").stat().st_mtime > since, "reports would take it for an old one"
    assert list(fifo(seed=2).folder.glob("coverage-*.json"))


def test_another_question_is_another_run(starts: list[str]) -> None:
    for more in ({}, {"seed": 2}, {"plant": FULL}, {"plant": NEXT}, {"environment": {"A": "1"}}):
        fifo(**more)
    assert len(starts) == 5


@pytest.mark.parametrize("name", ["FRESH", "CI", "PLEXUS_TOGGLES", "PLEXUS_COVERAGE"])
def test_nothing_kept_is_used_if_asked_so(name: str, starts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fifo()
    monkeypatch.setenv(name, "true")
    fifo()
    assert len(starts) == 2


def test_what_surprises_is_run_again_and_a_changed_bench_too(
    starts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(truth: str, plant: str) -> bool:
        name = f"bench_of_{truth.lower()}"
        (tmp_path / f"{name}.py").write_text(CHECKED.format(truth=truth))
        return run_bench("fifo", name, named("tiny"), options=SHAPE, planted=True, plant=plant).ok

    monkeypatch.syspath_prepend(tmp_path)
    for truth, plant in (("False", ""), ("True", FULL)):
        starts.clear()
        assert [run(truth, plant), run(truth, plant)] == [truth == "True"] * 2
        assert len(starts) == 2, "a red run or an unnoticed fault was kept"
    digests = []
    for text in ("x = 1\n", "x = 2\n"):
        monkeypatch.setattr(verdicts, "sources_of", lambda _, text=text: type("S", (), {"digest": text}))
        verdicts.bench_digest.cache_clear()
        digests.append(verdicts.bench_digest(BENCH))
    verdicts.bench_digest.cache_clear()
    assert digests[0] != digests[1]


def pytest_says(*arguments: str, shelf: Path) -> str:
    unwanted = ("FRESH", "CI", "PYTEST_CURRENT_TEST", verdicts.USES_VARIABLE)
    environment = {k: v for k, v in os.environ.items() if k not in unwanted} | {"PLEXUS_BUILD": str(shelf)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout


def test_tests_that_passed_with_the_same_sources_are_counted_as_such(tmp_path: Path) -> None:
    """The second time; not with --fresh, and not one that skips or whose top has changed."""
    file = "tests/unit/test_ram_cell.py"
    assert "passed before" not in pytest_says(file, shelf=tmp_path)
    assert " passed before with the same sources" in pytest_says(file, shelf=tmp_path)
    assert "passed before" not in pytest_says(file, "--fresh", shelf=tmp_path)
    for record in (tmp_path / "verdicts" / "tests").glob("*.json"):
        record.write_text(record.read_text().replace('"tops": {', '"tops": {"gone": "0", ').replace(", }", "}"))
    assert "passed before" not in pytest_says(file, shelf=tmp_path)
