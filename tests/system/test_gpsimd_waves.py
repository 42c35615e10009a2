"""What waves hold of a GPSIMD core: every instruction that the golden machine executes, with all its values."""

import dataclasses
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from firmware.image import build_image
from firmware.workloads import find_workload
from rtl.contract.config import named
from sim.report.verdict import passed
from sim.run.retired import RETIRED_SCOPE, RetiredInstruction, retired_in
from sim.run.waves import Waves
from sim.systems.core.run import Run, run_workload
from sim.trace.cores import core_intervals
from sim.trace.recorded import load_trace
from verif.golden.machine import GoldenMachine
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.retired import Retired

pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.regress]
MHARTID = 0xF14
TINY = named("tiny")
SHARED = [field.name for field in dataclasses.fields(RetiredInstruction)][2:]


def recording(kept: dict[int, list[Retired]]) -> Any:
    """Hart.run, step by step, which keeps what each hart retires."""

    def run(hart: Hart, limit: int, pending: int = 0) -> int:
        actions, made = hart._actions, 0
        actions.waits = hart._paused = False
        while made < limit and not actions.waits and not hart._paused:
            kept[hart.csrs.read(MHARTID)].append(hart.step(pending))
            made += 1
        return made

    return run


@pytest.mark.parametrize(
    ("scope", "cores"), [("gpsimd", (0, 1)), (RETIRED_SCOPE.format(core=1), (1,))], ids=["engine", "core"]
)
def test_waves_have_what_the_golden_machine_executes(
    scope: str, cores: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden: dict[int, list[Retired]] = defaultdict(list)
    params = find_workload("gpsimd").complete({"program": "topk", "columns": 8, "k": 3})
    waves = Waves(path=tmp_path / "a.vcd", scope=scope)
    report = run_workload(
        Run(workload="gpsimd", params=params, cfg=TINY, out=tmp_path, waves=waves), Console(quiet=True)
    )
    monkeypatch.setattr(Hart, "run", recording(golden))
    machine = GoldenMachine(TINY)
    machine.load(build_image(find_workload("gpsimd").build(TINY, params, seed=0)))
    machine.run()
    assert passed(report) and sorted(golden) == [0, 1]
    recorded = load_trace(tmp_path)
    for core in cores:
        found = list(retired_in(waves.path, core))
        want = [tuple(getattr(one, name) for name in SHARED) for one in golden[core]]
        assert [tuple(getattr(one, name) for name in SHARED) for one in found] == want
        assert len(found) == report["gpsimd_cores"][core]["instructions"] - 1 > 500  # without the store that ends it
        # it left the stage that counts two cycles of its own before, or more if it waited for a loaded value
        busy = [spans for spans in core_intervals(recorded, core).tolist() if spans[2] == 0]
        retires = {one.cycle - 4 for one in found if not one.mem_rmask}
        assert all(any(begin <= cycle < end for begin, end, _ in busy) for cycle in retires)
    assert {one.core for one in retired_in(waves.path)} == set(cores)
