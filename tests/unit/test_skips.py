"""What `make test` says of tests that were skipped."""

from pathlib import Path

import pytest

import verif.checks.skips as skips

RUNS = {
    "a.xml": '<testcase classname="verif.benches.x" name="t"/><testcase classname="verif.benches.x" name="u"/>',
    "b.xml": '<testcase classname="verif.benches.x" name="t"><skipped/></testcase>',
}
NEVER = '<testcase classname="verif.benches.x" name="v"><skipped/></testcase>'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(skips, "ROOT", tmp_path)
    monkeypatch.setattr(skips, "STAMP", tmp_path / "build" / "test-start")
    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path / "build"))
    (tmp_path / "build" / "results").mkdir(parents=True)
    for name, cases in RUNS.items():
        (tmp_path / "build" / "results" / name).write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    return tmp_path / "build"


def test_skipped_tests_have_names_and_numbers(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert skips.main() == 0
    out = capsys.readouterr().out
    assert out.startswith("1 tests are skipped somewhere, 1 times") and "verif.benches.x.t: skipped 1, ran 1" in out


def test_a_test_of_a_bench_that_never_ran_is_an_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "junit-sim.xml").write_text(f"<testsuites><testsuite>{NEVER}</testsuite></testsuites>")
    assert skips.main() == 1
    assert "1 of them never ran: verif.benches.x.v" in capsys.readouterr().out
