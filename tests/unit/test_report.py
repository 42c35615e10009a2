"""report.json: its keys, its sums, how it is written, and what a terminal shows of it."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware.kernels.gemm import gemm
from firmware.program import Program
from rtl.contract.config import load, named
from rtl.contract.isa import Cause, Opcode, Queue
from rtl.contract.timing import CONFLICT_PORTS, PORTS_OF, STALLS, Engine
from sim.advice.bounding import bounds
from sim.errors import PlexusError
from sim.native.library import RETIRED
from sim.page.write import read_report
from sim.report.report_json import ReportError, Subject, make_report, write_report
from sim.report.terminal import show
from sim.report.verdict import passed
from sim.run.compare import Comparison, compare
from sim.run.result import EngineCycles, Fault, RunResult

CFG = named("small")
PROMISED = (
    "workload params config config_hash array seed tool_versions match cycles wall_seconds cycles_per_second "
    "macs tensor_utilization tensor_window_cycles tensor_window_utilization engines bound_cycles bound_by "
    "hbm_bytes_read hbm_bytes_written hbm_utilization metrics conflicts faults nanoseconds "
    "vector_window_cycles vector_window_utilization scalar_window_cycles scalar_window_utilization "
    "bounding_engine bounding_share busiest_engine bounding_stall bounding_stall_share relief relief_set "
    "config_base config_changes config_file config_resolved"
).split()


@pytest.fixture(scope="module")
def program() -> Program:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 32), np.float32), rng.standard_normal((32, 96), np.float32)
    return gemm(CFG, a, b)


def result(**changes: Any) -> RunResult:
    engines = {}
    for engine in Engine:
        stall = dict.fromkeys(STALLS[engine], 10)
        engines[engine.name.lower()] = EngineCycles(busy=300, idle=700 - 10 * len(stall), stall=stall)
    values: dict[str, Any] = {
        "device": "rtl",
        "end": "done",
        "message": "",
        "cycles": 1000,
        "engines": engines,
        "windows": {"tensor": (100, 899), "vector": (300, 899), "scalar": (0, 0)},
        "hbm_bytes_read": 12_800,
        "hbm_bytes_written": 6400,
        "conflicts": {**dict.fromkeys(CONFLICT_PORTS, 0), "sbuf_mover_reads": 3, "psum_vector_read": 1200},
        "faults": (),
        "outputs": {"C": np.arange(6, dtype=np.uint32).reshape(2, 3)},
        "wall_seconds": 0.01,
        "cpu_seconds": 0.008,
        "retired": np.empty(0, RETIRED),
        "retired_total": 12,
    }
    return RunResult(**{**values, **changes})


def report(program: Program, run: RunResult | None = None) -> dict[str, Any]:
    run = run or result()
    expected = {"C": np.arange(6, dtype=np.uint32).reshape(2, 3)}
    subject = Subject(workload="gemm", params={"m": 64}, cfg=CFG, array="native", fast=False, seed=3, program=program)
    return make_report(subject, run, compare(run.outputs, expected), {"cosine": 0.5})


def shown(values: dict[str, Any]) -> str:
    text = io.StringIO()
    show(values, Console(file=text, width=120))
    return text.getvalue()


def test_every_promised_key_is_there(program: Program) -> None:
    values = report(program)
    assert [key for key in PROMISED if key not in values] == []
    assert set(values["engines"]) == {"tensor", "vector", "scalar", "gpsimd", "dma"}
    assert json.loads(json.dumps(values)) == values


def test_numbers(program: Program) -> None:
    values = report(program)
    macs = 64 * 32 * 96
    assert values["macs"] == macs
    assert values["tensor_utilization"] == pytest.approx(macs / (32 * 32 * 1000), abs=1e-6)
    assert values["tensor_window_cycles"] == 800
    assert values["tensor_window_utilization"] == pytest.approx(macs / (32 * 32 * 800), abs=1e-6)
    assert (values["vector_window_cycles"], values["vector_window_utilization"]) == (600, 0.5)
    assert (values["scalar_window_cycles"], values["scalar_window_utilization"]) == (0, 0.0)
    assert values["hbm_utilization"] == pytest.approx(19_200 / 64_000)
    assert values["nanoseconds"] == pytest.approx(1000 / 2.4, abs=1e-3)
    assert values["cycles_per_second"] == 100_000
    assert values["match"] is True
    assert values["config_hash"] == CFG.hash


def test_bound_is_the_largest(program: Program) -> None:
    limits = bounds(CFG, program, 1_000_000)
    assert limits["compute"] == 64 * 32 * 96 // (32 * 32)
    assert limits["hbm"] == 15_625
    assert limits["vector_port"] == program.vector_cycles * 2
    assert limits["scalar_port"] == 0
    values = report(program)
    assert values["bound_cycles"] == max(values["bounds"].values())
    assert values["bounds"][values["bound_by"]] == values["bound_cycles"]


def test_engines_sum_to_cycles(program: Program) -> None:
    for engine in report(program)["engines"].values():
        assert engine["busy"] + engine["idle"] + sum(engine["stall"].values()) == 1000


def test_broken_sum_is_refused(program: Program) -> None:
    good = result()
    wrong = {**good.engines, "dma": dataclasses.replace(good.engines["dma"], busy=301)}
    with pytest.raises(ReportError, match="counters of dma sum to 1001, but the run took 1000"):
        report(program, result(engines=wrong))


def test_the_variant_is_in_the_report_and_in_its_title(program: Program) -> None:
    cfg = load("small", ["dma.engines=8", "hbm.latency_ns=50"])
    run = result()
    subject = Subject(
        workload="gemm", params={}, cfg=cfg, array="native", fast=False, seed=0, program=program, file="mine.toml"
    )
    values = make_report(subject, run, compare(run.outputs, run.outputs), {})
    assert values["config_changes"] == {"dma.engines": 8, "hbm.latency_ns": 50}
    assert (values["config_base"], values["config_file"]) == ("small", "mine.toml")
    assert values["config_resolved"]["dma"]["engines"] == 8 and values["config_resolved"] == cfg.as_dict()
    title = " ".join(shown(values).split())
    assert "gemm on mine.toml, small with dma.engines=8, hbm.latency_ns=50, native array" in title
    plain = report(program)
    assert plain["config_changes"] == {} and shown(plain).startswith("MATCH  gemm on small, native array")


def with_parts(busy: dict[str, int], unit: dict[str, int]) -> RunResult:
    good = result()
    vector = dataclasses.replace(good.engines["vector"], parts={"busy": busy, "unit": unit})
    return result(engines={**good.engines, "vector": vector})


def test_parts_of_busy_and_unit(program: Program) -> None:
    values = report(program, with_parts({"tensor_copy": 40, "exp": 260}, {"reciprocal": 10}))
    assert list(values["engines"]["vector"]["parts"]["busy"].items()) == [("exp", 260), ("tensor_copy", 40)]
    assert values["engines"]["vector"]["parts"]["unit"] == {"reciprocal": 10}
    text = shown(values)
    assert "busy with exp 26.0 %" in text and "tensor copy" not in text  # 4 % of the cycles


@pytest.mark.parametrize(("busy", "unit"), [({"exp": 299}, {"exp": 10}), ({"exp": 300}, {"exp": 11})])
def test_parts_that_do_not_sum_are_refused(program: Program, busy: dict[str, int], unit: dict[str, int]) -> None:
    with pytest.raises(ReportError, match="of vector sum to"):
        report(program, with_parts(busy, unit))


def test_beats_of_the_array_by_what_the_kernel_calls_them(program: Program) -> None:
    tensor = [i for i in program.queues[Queue.TENSOR] if i.opcode == Opcode.MULTIPLY_MOVING]
    beats = sum(i.dst.elements for i in tensor if i.dst is not None)
    named_ones = [dataclasses.replace(i, part="transpose") if i is tensor[0] else i for i in tensor]
    mixed = dataclasses.replace(program, queues={**program.queues, Queue.TENSOR: named_ones})
    first = tensor[0].dst.elements if tensor[0].dst is not None else 0
    good = result()
    exact = dataclasses.replace(good.engines["tensor"], busy=beats, idle=good.engines["tensor"].idle + 300 - beats)
    parts = report(mixed, result(engines={**good.engines, "tensor": exact}))["engines"]["tensor"]["parts"]
    assert parts == {"busy": {"multiply_moving": beats - first, "transpose": first}}
    # beats of row tiles beside each other: nobody knows whose cycle it was
    assert report(mixed)["engines"]["tensor"]["parts"] == {"busy": {"multiply_moving": 300}}


def test_match_line(program: Program) -> None:
    text = shown(report(program))
    assert text.startswith("MATCH")
    for words in ("tensor", "semaphore\u00a01.0\u00a0%", "bound", "cycles/s", "cosine"):
        assert words in text
    assert "refused cycles: vector psum read 1,200, dma sbuf read 3" in text
    assert "busy 50.0 % of its window of 600 cycles" in text


def test_parameters_that_nobody_set_are_not_shown(program: Program) -> None:
    values = report(program) | {"params": {"m": 64, "seed": None, "text": 40 * "word "}}
    assert f"  m=64  text={(40 * 'word ')[:61]}...\n" in shown(values)
    assert "seed" not in shown(values)


def test_conflicts_by_engine(program: Program) -> None:
    values = report(program)
    engines = values["engines"]
    assert engines["dma"]["conflicts"] == {"sbuf_read": 3, "sbuf_write": 0, "sbuf_add": 0}
    assert engines["vector"]["conflicts"] == {"sbuf_read": 0, "sbuf_write": 0, "psum_read": 1200, "psum_write": 0}
    assert engines["gpsimd"]["conflicts"] == {"sbuf_read": 0, "sbuf_write": 0}
    assert sorted(port for ports in PORTS_OF.values() for port in ports.values()) == sorted(CONFLICT_PORTS)


def test_relief_line(program: Program) -> None:
    values = report(program)
    # the DMA's ports need more than 300 of the 1000 cycles, which all engines are busy
    assert (values["bounding_engine"], values["busiest_engine"], values["bounding_share"]) == ("latency", "dma", 0.3)
    assert (values["bounding_stall"], values["bounding_stall_share"]) == ("descriptor", 0.01)
    text = " ".join(shown(values).split())
    assert "nothing is busy half of the time; the busiest is dma, 30.0 %, stalled most for descriptor, 1.0 %" in text
    good = result()
    busy = {**good.engines, "vector": dataclasses.replace(good.engines["vector"], busy=800, idle=110)}
    text = " ".join(shown(report(program, result(engines=busy))).split())
    assert "vector bounds this run, 80.0 % busy" in text


def test_first_mismatch_is_named(program: Program) -> None:
    wrong = np.arange(6, dtype=np.uint32).reshape(2, 3)
    wrong[1, 1:] = 0xFF
    values = report(program, result(outputs={"C": wrong}))
    assert values["match"] is False
    assert values["mismatch"] == {
        "tensor": "C", "index": [1, 1], "got": "0x000000ff", "expected": "0x00000004", "count": 2
    }  # fmt: skip
    text = shown(values)
    assert text.startswith("MISMATCH")
    assert "C[1, 1] is 0x000000ff, expected 0x00000004; 2 elements" in text


def test_golden_machine_that_does_not_finish_is_no_match(program: Program) -> None:
    subject = Subject(workload="gemm", params={}, cfg=CFG, array="native", fast=False, seed=0, program=program)
    comparison = Comparison(match=False, elements=0, why="the golden machine cannot finish this program: it waits")
    values = make_report(subject, result(), comparison, {})
    assert not values["match"] and values["not_compared"] == comparison.why
    assert not passed(values)
    assert shown(values).startswith(f"MISMATCH  gemm on small, native array\n  {comparison.why}\n")


def test_fault_is_named_with_its_line(program: Program) -> None:
    fault = Fault(queue="tensor", sequence=0, cause=Cause.OUT_OF_RANGE, address=0x40000)
    values = report(program, result(end="fault", faults=(fault,)))
    assert values["faults"][0]["source"].startswith("firmware/kernels/")
    text = shown(values)
    assert text.startswith("FAULT")
    assert "tensor, item 0: out of range, address 0x40000" in text


def test_stuck_says_what_is_behind(program: Program) -> None:
    text = shown(report(program, result(end="stuck", progress={"vector": "3 of 4"})))
    assert text.startswith("STUCK")
    assert "vector: 3 of 4 completed" in text


def test_written_whole(program: Program, tmp_path: Path) -> None:
    path = write_report(report(program), tmp_path / "a" / "b")
    assert json.loads(path.read_text())["cycles"] == 1000
    assert [p.name for p in path.parent.iterdir()] == ["report.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(PlexusError, match="cannot be written"):
        write_report(report(program), tmp_path / "file" / "sub")


def test_a_folder_of_runs_names_them(tmp_path: Path) -> None:
    with pytest.raises(PlexusError, match=r"has no report\.json: name the folder of a run, as in build/runs"):
        read_report(tmp_path)
    for number in (10, 2, 1):
        (tmp_path / f"{number}-program_0").mkdir()
        (tmp_path / f"{number}-program_0" / "report.json").write_text("{}")
    (tmp_path / "waves").mkdir()
    with pytest.raises(PlexusError, match=r"there are 1-program_0, 2-program_0, 10-program_0$"):
        read_report(tmp_path)
    for number in range(20, 27):
        (tmp_path / f"{number}-program_0").mkdir()
        (tmp_path / f"{number}-program_0" / "report.json").write_text("{}")
    with pytest.raises(PlexusError, match=r"24-program_0 and 2 more$"):
        read_report(tmp_path)
