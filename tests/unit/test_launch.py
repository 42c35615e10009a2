"""What counts as noticing a planted fault."""

from pathlib import Path
from typing import Any

import pytest

import verif.launch
from sim.run.runner import BenchError, verdict_of
from sim.toolchain import ROOT
from verif.launch import must_notice

DRIVER = f"{ROOT}/verif/benches/base/driver.py"
CASES = {
    "check": ("AssertionError", DRIVER, "/usr/lib/python3/site-packages/numpy/testing/utils.py"),
    "model": ("AssertionError", DRIVER, f"{ROOT}/verif/golden/memory.py"),
    "coverage": ("AssertionError", DRIVER, f"{ROOT}/verif/checks/coverage.py"),
    "mistake": ("KeyError", DRIVER),
    "timeout": ("SimTimeoutError", "/usr/lib/python3/site-packages/cocotb/triggers.py"),
}

FAULT = "a FIFO takes an entry when full"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """must_notice on a bench that ends so."""

    def notice(end: str, **more: Any) -> None:
        kind, *files = CASES[end]
        frames = "".join(f'  File "{file}", line 7, in step\n    assert a == b\n' for file in files)
        case = f"""<testcase name="t" time="0"><failure message="m" type="{kind}"><![CDATA[Traceback:
{frames}{kind}: m]]></failure></testcase>"""
        file = tmp_path / "results.xml"
        file.write_text(f'<testsuites><testsuite name="all"><testcase name="s"/>{case}</testsuite></testsuites>')
        monkeypatch.setattr(verif.launch, "run_bench", lambda *_, **__: verdict_of(file, plant=FAULT))
        must_notice("fifo", "bench", FAULT, **more)

    return notice


@pytest.mark.parametrize("end", ["check", "model"])
def test_a_comparison_of_the_bench_is_a_notice(run: Any, end: str) -> None:
    run(end)


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("coverage", "t failed in verif/checks/coverage.py, which checks no unit"),
        ("mistake", "t ended with KeyError, which is no comparison"),
        ("timeout", "t ran into its timeout, and RUNS does not say that the fault hangs"),
    ],
)
def test_an_accident_is_none(run: Any, end: str, says: str) -> None:
    with pytest.raises(BenchError, match=rf"bench noticed a planted fault of fifo \({FAULT}\) by accident: {says}"):
        run(end)


def test_a_fault_that_hangs_may_run_into_the_timeout_but_into_nothing_else(run: Any) -> None:
    run("timeout", hangs=True)
    with pytest.raises(BenchError, match="ended with KeyError"):
        run("mistake", hangs=True)
