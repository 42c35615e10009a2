"""Tracks of GPSIMD cores on the RTL: what they sum to, beside other clocks, behind the last record, and cut off."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firmware.image import build_image
from firmware.workloads import find_workload
from rtl.contract.config import load
from rtl.contract.gpsimd import Counter
from rtl.contract.isa import Opcode
from sim.cli import main
from sim.run.result import RunResult
from sim.systems.core.verilated import VerilatedDevice, build_core
from sim.trace.agreement import TraceError, need_agreement
from sim.trace.cores import CORE_STATES, core_intervals, core_state_cycles, cores_that_ran
from sim.trace.recorded import Recorded, load_trace
from sim.trace.recording import record

pytestmark = pytest.mark.sim
TINY = load("tiny", ["gpsimd.vectors=false"])
GATHER = {"program": "gather", "mode": "partitions", "columns": 8}
"""Loads of SBUF and of the memory that cores share."""


def told(core: dict[str, Any]) -> dict[str, int]:
    return {"busy": core["busy"], "idle": core["idle"], **core["stall"]}


@pytest.mark.parametrize(
    ("clock_mhz", "vectors", "seen"),
    [
        (1200, "false", {"busy", "idle", "sbuf", "memory", "load"}),
        (1000, "true", {"busy", "idle", "vector"}),
        (1200, "true", {"busy", "idle", "vector"}),
    ],
)
def test_tracks_are_the_counters_of_the_report(clock_mhz: int, vectors: str, seen: set[str], tmp_path: Path) -> None:
    params = [word for name, value in GATHER.items() for word in ("-p", f"{name}={value}")]
    asked = ["run", "gpsimd", "--config", "tiny", "--set", f"gpsimd.clock_mhz={clock_mhz}", *params]
    asked += ["--set", f"gpsimd.vectors={vectors}"]
    assert main([*asked, "--out", str(tmp_path)]) == 0
    report, recorded = json.loads((tmp_path / "report.json").read_text()), load_trace(tmp_path)
    assert cores_that_ran(recorded) == [0, 1] and recorded.cores_from == recorded.cycles == report["cycles"]
    ratio = TINY.tensor.clock_mhz / clock_mhz
    for n, core in enumerate(report["gpsimd_cores"]):
        assert core_state_cycles(recorded, n) == told(core)
        found = core_intervals(recorded, n)
        assert found["begin"].tolist() == [0, *found["end"].tolist()[:-1]] and found["end"][-1] == recorded.cycles
        for state, name in enumerate(CORE_STATES):
            mine = found[found["value"] == state]
            # an interval begins and ends with cycles of the GPSIMD clock, the run within one of them
            cycles = (mine["end"] - mine["begin"]).sum()
            assert abs(cycles - ratio * told(core)[name]) <= ratio + len(mine) * (ratio % 1 > 0)
        assert seen <= {CORE_STATES[value] for value in found["value"]}
    runs = recorded.item_program_text[recorded.item_opcode == Opcode.GP_RUN]
    assert [recorded.text(text) for text in runs.tolist()] == ["gather"]


def traced(**options: Any) -> tuple[Recorded, RunResult, tuple[int, int]]:
    program = find_workload("gpsimd").build(TINY, find_workload("gpsimd").complete(GATHER), seed=0)
    with VerilatedDevice(TINY, build_core(TINY).binary, **options) as device:
        device.load(build_image(program))
        result = device.run()
    assert result.trace is not None and result.hbm is not None
    return record(result.trace, result.retired, program), result, (result.hbm.read_beats, result.hbm.write_beats)


def test_behind_the_last_record_there_are_sums() -> None:
    recorded, result, beats = traced(trace_records=700)
    assert len(recorded.cores_step) == 700 and 0 < recorded.cores_from < recorded.cycles == recorded.coarse_from
    assert recorded.cores_sums[:2].any(axis=1).all() and (recorded.cores_sums[2:, Counter.BUSY] == 0).all()
    assert core_intervals(recorded, 1)["end"][-1] == recorded.cores_from
    need_agreement(recorded, result, beats)
    sums = recorded.cores_sums.copy()
    sums[1, Counter.BUSY] += 1
    with pytest.raises(TraceError, match="GPSIMD cycles of gp1 in busy"):
        need_agreement(replace(recorded, cores_sums=sums), result, beats)


def test_a_run_that_breaks_off_agrees_too() -> None:
    whole, *_ = traced(trace_records=1 << 20)
    busy = core_intervals(whole, 0)
    cut = int(busy["begin"][len(busy) // 2])
    recorded, result, beats = traced(trace_records=1 << 20, max_cycles=cut)
    assert result.end == "limit" and recorded.cycles < whole.cycles and len(result.gpsimd_cores) == 2
    need_agreement(recorded, result, beats)
    states = recorded.cores_states.copy()
    states[len(states) // 2] ^= 1 << 4
    with pytest.raises(TraceError, match="GPSIMD cycles of gp1 in"):
        need_agreement(replace(recorded, cores_states=states), result, beats)
