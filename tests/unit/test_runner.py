"""What is read from a simulator's results, and what travels to the bench."""

from pathlib import Path

import pytest

from rtl.contract.config import NAMED
from sim.run.manifest import Manifest
from sim.run.runner import BenchError, verdict_of
from sim.systems.configurations import restored

CASES = {
    "good": '<testcase name="a" time="1.5"/>',
    "bad": '<testcase name="b" time="0"><failure message="AssertionError: 3 is not 4"/></testcase>',
    "broken": '<testcase name="c" time="0"><error message="no such handle"/></testcase>',
    "skipped": '<testcase name="d" time="0"><skipped/></testcase>',
}


def results(folder: Path, *cases: str) -> Path:
    file = folder / "results.xml"
    text = "".join(CASES[c] for c in cases)
    file.write_text(f'<testsuites><testsuite name="all">{text}</testsuite></testsuites>')
    return file


def test_verdict_counts(tmp_path: Path) -> None:
    verdict = verdict_of(results(tmp_path, "good", "bad", "broken", "skipped"), bench="x", seed=3)
    assert (verdict.ran, verdict.failed, verdict.ok) == (3, 2, False)
    assert verdict.first == "b: AssertionError: 3 is not 4"
    assert verdict.skipped == ("d",)
    assert verdict_of(results(tmp_path, "good")).ok


def test_failed_verdict_names_seed_cases_and_log(tmp_path: Path) -> None:
    with pytest.raises(BenchError) as error:
        verdict_of(results(tmp_path, "good", "bad", "broken"), bench="x", seed=3).require()
    text = str(error.value)
    assert text.startswith("x seed 3: 2 of 3 tests failed (b, c)\nb: AssertionError: 3 is not 4\n")
    assert text.endswith("run.log")


@pytest.mark.parametrize(
    ("cases", "why"), [((), "a filter matched nothing"), (("skipped", "skipped"), "all 2 are skipped")]
)
def test_silence_is_not_success(tmp_path: Path, cases: tuple[str, ...], why: str) -> None:
    with pytest.raises(BenchError, match=f"no test ran in x: {why}"):
        verdict_of(results(tmp_path, *cases), bench="x")


@pytest.mark.parametrize("name", NAMED)
def test_manifest_comes_back_as_it_went(tmp_path: Path, name: str) -> None:
    cfg = NAMED[name]
    assert restored(cfg.as_dict()) == cfg
    sent = Manifest(
        top="fifo",
        config=cfg,
        options={"depth": 4},
        plant="it is late",
        plant_number=2,
        planted=True,
        seed=7,
        folder=tmp_path,
    )
    sent.write(tmp_path / "manifest.json")
    assert Manifest.read(tmp_path / "manifest.json") == sent
