"""The core under the native driver beside the golden machine: bits, faults, ends, repeatability."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware.image import build_image
from firmware.kernel import Kernel
from firmware.program import Program, SemaphoreWait
from firmware.workloads import find_workload
from rtl.contract.config import Config, named
from rtl.contract.isa import Cause, Queue
from sim.cli import main
from sim.report.verdict import passed
from sim.run.device import find_device
from sim.run.result import RunResult
from sim.run.waves import Waves
from sim.systems.core.run import Run, run_workload
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.golden.machine import DeadlockError, GoldenMachine

TINY = named("tiny")


def on_rtl(program: Program, cfg: Config = TINY, **options: Any) -> RunResult:
    with VerilatedDevice(cfg, build_core(cfg).binary, **options) as device:
        device.load(build_image(program))
        return device.run()


def on_golden(program: Program, cfg: Config = TINY) -> Any:
    golden = find_device("golden")(cfg)
    golden.load(build_image(program))
    return golden.run()


def gemm(**params: Any) -> Program:
    workload = find_workload("gemm")
    return workload.build(TINY, {"m": 13, "k": 20, "n": 70, **params}, 1)


@pytest.mark.sim
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"dtype": "fp16", "out": "bf16"},
        {"resident": True},
        {"m": 1, "k": 1, "n": 1},
        {"m": 8, "k": 8, "n": 64},
    ],
    ids=str,
)
def test_gemm_leaves_the_golden_bits(params: dict[str, Any]) -> None:
    program = gemm(**params)
    got, want = on_rtl(program), on_golden(program)
    assert got.end == "done"
    for name, bits in want.outputs.items():
        assert np.array_equal(got.outputs[name], bits)


@pytest.mark.sim
def test_every_cycle_is_accounted_for_and_repeats() -> None:
    program = gemm()
    first, second = on_rtl(program), on_rtl(program)
    for engine in first.engines.values():
        assert engine.total == first.cycles
    assert first.engines == second.engines
    assert first.cycles == second.cycles
    assert np.array_equal(first.retired, second.retired)
    assert first.retired_total == sum(len(queue) for queue in program.queues.values())
    assert 0 < first.window_cycles("tensor") < first.cycles


@pytest.mark.sim
def test_fault_is_the_golden_machines_and_cycles_still_sum() -> None:
    program = gemm()
    queue = program.queues[Queue.TENSOR]
    bad = queue[3]
    assert bad.src0 is not None
    queue[3] = dataclasses.replace(bad, src0=dataclasses.replace(bad.src0, offset=TINY.sbuf.partition_bytes))
    got, want = on_rtl(program), on_golden(program)
    assert got.end == "fault"
    records = [(f.queue, f.sequence, f.cause, f.address) for f in got.faults]
    assert records == [(f.queue, f.sequence, f.cause, f.address) for f in want.faults]
    assert [(f.queue, f.sequence, f.cause) for f in got.faults] == [("tensor", 3, Cause.OUT_OF_RANGE)]
    for engine in got.engines.values():
        assert engine.total == got.cycles
    assert got.progress["tensor"] == f"3 of {len(queue)}"


@pytest.mark.sim
def test_a_program_that_waits_for_ever_is_stuck() -> None:
    program = gemm()
    queue = program.queues[Queue.TENSOR]
    queue[0] = dataclasses.replace(queue[0], waits=(SemaphoreWait(100, 1),))
    got = on_rtl(program, quiet_cycles=3000)
    assert got.end == "stuck"
    assert got.progress["tensor"] == f"0 of {len(queue)}"
    for engine in got.engines.values():
        assert engine.total == got.cycles


def long_copy() -> Program:
    """One TENSOR_COPY over 2,000 elements of every lane."""
    k = Kernel(TINY, "long copy")
    bits = np.random.default_rng(0).integers(0, 1 << 15, (8, 2000), dtype=np.uint16)
    a, b = (k.sbuf(name, partitions=8, columns=2000, dtype="bf16") for name in "ab")
    k.dma(a[:, :], k.hbm("x", (8, 2000), "bf16", bits)[:, :])
    k.vector.copy(b[:, :], a[:, :])
    k.dma(k.hbm("y", (8, 2000), "bf16")[:, :], b[:, :])
    return k.program()


def copy_inside() -> Program:
    """Two descriptors of 16,000 bytes from SBUF to SBUF, through one crossbar of 16 bytes a cycle."""
    return find_workload("dma").build(TINY, {"rows": 8, "row_bytes": 4000, "direction": "sbuf"}, 1)


@pytest.mark.sim
@pytest.mark.parametrize("program", [long_copy, copy_inside])
def test_long_work_inside_the_core_is_not_stuck(program: Callable[[], Program]) -> None:
    """Both keep all ports silent for more than 900 cycles."""
    got, want = on_rtl(program(), quiet_cycles=300), on_golden(program())
    assert got.end == "done"
    assert got.cycles == on_rtl(program()).cycles
    for name, bits in want.outputs.items():
        assert np.array_equal(got.outputs[name], bits)


@pytest.mark.sim
def test_run_writes_its_report(tmp_path: Path) -> None:
    params = find_workload("gemm").complete({"m": 16, "k": 16, "n": 16})
    run = Run(workload="gemm", params=params, cfg=TINY, out=tmp_path)
    report = run_workload(run, Console(quiet=True))
    assert passed(report)
    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert report["cycles"] >= report["bound_cycles"] > 0


@pytest.mark.sim
def test_command_line_prints_the_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", "gemm", "--config", "tiny", "-p", "m=9", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("MATCH  gemm on tiny, native array")


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bits of a golden machine are kept: what this one's double says stays here."""

    def nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr("sim.run.checking.kept_golden", nothing)
    monkeypatch.setattr("sim.run.checking.keep_golden", nothing)


RUN_GEMM = ["run", "gemm", "--config", "tiny", "-p", "m=8", "-p", "k=8", "-p", "n=16", "--out"]


@pytest.mark.sim
@pytest.mark.usefixtures("nothing_kept")
def test_one_wrong_bit_is_a_mismatch(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = GoldenMachine.run

    def wrong(machine: GoldenMachine) -> Any:
        result = right(machine)
        result.outputs["c"][4, 5] ^= 1
        return result

    monkeypatch.setattr(GoldenMachine, "run", wrong)
    assert main([*RUN_GEMM, str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("MISMATCH  gemm on tiny, native array\n  first: c[4, 5] is 0x")
    assert "1 elements of c differ" in " ".join(out.split())
    assert err == ""
    mismatch = json.loads((tmp_path / "report.json").read_text())["mismatch"]
    assert int(mismatch["got"], 16) ^ int(mismatch["expected"], 16) == 1
    assert (mismatch["index"], mismatch["count"]) == ([4, 5], 1)


@pytest.mark.sim
@pytest.mark.usefixtures("nothing_kept")
def test_a_result_is_kept_if_the_golden_machine_cannot_finish(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def waits(_: GoldenMachine) -> Any:
        raise DeadlockError("queue vector waits at instruction 3")

    monkeypatch.setattr(GoldenMachine, "run", waits)
    assert main([*RUN_GEMM, str(tmp_path)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "cannot finish this program: queue vector waits at instruction 3" in out
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["match"], report["end"]) == (False, "done")
    assert report["cycles"] > 0


@pytest.mark.regress  # a core that can write waves is twice the C++ of one that cannot
@pytest.mark.sim
def test_waves(tmp_path: Path) -> None:
    path = tmp_path / "waves" / "x.vcd"
    params = find_workload("gemm").complete({"m": 8, "k": 8, "n": 8})
    run = Run(workload="gemm", params=params, cfg=TINY, out=tmp_path, waves=Waves(path=path))
    assert passed(run_workload(run, Console(quiet=True)))
    assert path.stat().st_size > 10_000
