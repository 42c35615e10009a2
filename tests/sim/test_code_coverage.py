"""Coverage of a real model: Verilator's counts against a count that the bench itself makes at the ports."""

import json
from pathlib import Path

import pytest

from rtl.contract.config import named
from sim.build.coverage import COVERAGE, DATA
from sim.run.runner import BenchError, Verdict, run_bench
from verif.checks.code_coverage.units import Unit, add_model
from verif.launch import must_notice

pytestmark = pytest.mark.sim

FAULT = "a FIFO takes an entry when full"
SHAPE = {"shape": 4, "depth": 2}
BENCH = """
import json
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

PORTS = ("i__payload", "i__valid", "o__payload", "o__ready", "level")

@cocotb.test()
async def drives_three_of_four_bits(dut):
    seen = {name: 0 for name in PORTS}
    counts = {}

    def look():
        for name in PORTS:
            value = int(getattr(dut, name).value)
            for bit in range(4):
                if (value ^ seen[name]) >> bit & 1:
                    key = f"{name}[{bit}] {'rises' if value >> bit & 1 else 'falls'}"
                    counts[key] = counts.get(key, 0) + 1
            seen[name] = value

    dut.clk.value = 0
    dut.rst.value = 0
    for name in ("i__payload", "i__valid", "o__ready"):
        getattr(dut, name).value = 0
    for cycle in range(200):
        await Timer(1, "ns")
        dut.clk.value = 1
        await ReadOnly()
        look()
        await Timer(1, "ns")
        dut.clk.value = 0
        dut.i__payload.value = random.randrange(8)
        dut.i__valid.value = random.randrange(2)
        dut.o__ready.value = random.randrange(2)
        await ReadOnly()
        look()
    open("counted.json", "w").write(json.dumps(counts))
    assert {truth}
"""


@pytest.fixture(autouse=True)
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benches of tmp_path, and runs that are counted."""
    monkeypatch.setenv(COVERAGE, "1")
    monkeypatch.syspath_prepend(tmp_path)


def run(tmp_path: Path, name: str, truth: bool) -> Verdict:
    (tmp_path / f"{name}.py").write_text(BENCH.replace("{truth}", str(truth)))
    return run_bench("fifo", name, named("tiny"), options=SHAPE, planted=True)


def test_counts_are_those_at_the_ports(tmp_path: Path) -> None:
    verdict = run(tmp_path, "counting_bench", True).require()
    units: dict[str, Unit] = {}
    data = verdict.folder / DATA
    try:
        add_model(units, verdict.folder.parent, [data])
    finally:
        data.unlink()  # no bench of ours: `make coverage` must not count it
    (unit,) = units.values()
    expected = json.loads((verdict.folder / "counted.json").read_text())
    names = {key.partition("[")[0] for key in expected}
    ours = {
        f"{bit.name}[{bit.bit}] {'rises' if bit.rises else 'falls'}": hits
        for bit, hits in unit.toggles.items()
        if bit.name in names
    }
    assert {key: hits for key, hits in ours.items() if hits} == expected and len(expected) >= 16
    still = {key for key, hits in ours.items() if not hits}
    assert still == {f"{name}[3] {way}" for name in ("i__payload", "o__payload") for way in ("rises", "falls")}
    taken = {(branch.of, branch.path[-1:], what) for (_, branch, what), hits in unit.lines.items() if hits}
    assert {("write", ("if (enter)",), way) for way in ("if", "else")} <= taken
    missed = {(branch.path[-1:], what) for (_, branch, what), hits in unit.lines.items() if not hits}
    assert missed == {(("if (rst)",), "if")}, "the bench never resets"


def test_a_run_that_fails_does_not_count(tmp_path: Path) -> None:
    verdict = run(tmp_path, "failing_bench", False)
    assert not verdict.ok and not (verdict.folder / DATA).exists()


def test_a_run_with_a_fault_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = "verif.benches.base.bench_fifo"
    with pytest.raises(pytest.skip.Exception, match="without a fault"):
        must_notice("fifo", bench, FAULT, options=SHAPE)
    verdict = run_bench("fifo", bench, named("tiny"), options={"shape": 16, "depth": 4}, plant=FAULT)
    assert not verdict.ok and not list(verdict.folder.glob("coverage.dat*"))
    with pytest.raises(BenchError, match="failed"):
        verdict.require()
