"""A core as a system: every program of the firmware, on any configuration of a core."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console

from firmware.own_makers import find_own
from firmware.workload import parse_params
from firmware.workloads import WORKLOADS, find_workload
from rtl.contract.config import load
from rtl.contract.config_changes import difference
from rtl.contract.roles import covers, envelope, model_values
from sim.build.model import Built
from sim.report import terminal
from sim.run.checking import need_check
from sim.run.evaluate import read_arrays
from sim.run.host_arrays import host_array
from sim.run.variant import plain
from sim.systems.core import run as core_run
from sim.systems.core.run import Run
from sim.systems.core.verilated import build_core
from sim.systems.system import Asked, BuildAsked, Offer, System

__all__ = ["SYSTEM", "CoreSystem"]

_CONFIG = "small"
_ARRAY = "native"


class CoreSystem(System):
    """One core under the native driver, beside the golden machine."""

    name = "core"

    @property
    def workloads(self) -> Mapping[str, Offer]:
        return {name: Offer(doc=w.doc, params=w.params) for name, w in WORKLOADS.items()}

    @property
    def tops(self) -> Mapping[str, Callable[[BuildAsked], Built]]:
        return {"core": _build}

    def resolve(self, asked: Asked) -> Run:
        config = _CONFIG if asked.config is None else asked.config
        workload = find_workload(asked.workload)
        own = None
        if asked.arrays is not None:
            takes = find_own(asked.workload)
            own = {name: host_array(name, array) for name, array in read_arrays(asked.arrays).items()}
            given = parse_params(asked.params, workload.params, f"workload {workload.name}")
            params = takes.settle(workload, given, own)
        else:
            params = workload.parse(asked.params)
        cfg = workload.configure(load(config, asked.settings), params)
        return Run(
            workload=asked.workload,
            params=params,
            cfg=cfg,
            array=_ARRAY if asked.array is None else asked.array,
            seed=asked.seed,
            waves=asked.waves,
            fast=asked.fast,
            trace=asked.trace,
            check=need_check(asked.check),
            model=None if asked.model is None else load(config, asked.model),
            out=asked.out,
            own=own,
            out_arrays=asked.out_arrays,
            file=config if config.endswith(".toml") else None,
        )

    def run(self, run: Run, console: Console) -> dict[str, Any]:
        return core_run.run_workload(run, console)

    def group(self, run: Run) -> str:
        needed = run.needed(run.cfg)
        return json.dumps([model_values(needed), run.by_cores(needed), run.array, run.fast], sort_keys=True)

    def model(self, runs: Sequence[Run]) -> Sequence[str]:
        first, needed = runs[0], [run.needed(run.cfg) for run in runs]
        most = first.built if all(covers(first.built, cfg) for cfg in needed) else envelope(needed)
        changes = difference(most, load(first.file or first.cfg.name))
        return [f"{key}={plain(value)}" for key, value in changes.items()]

    def show(self, report: Mapping[str, Any], console: Console) -> None:
        terminal.show(report, console)

    @property
    def ledger_sections(self) -> Sequence[str]:
        return ("tiny", "small")

    def exact_figures(self, report: Mapping[str, Any]) -> Mapping[str, int]:
        windows = {engine: report[f"{engine}_window_cycles"] for engine in ("tensor", "vector", "scalar")}
        return {"cycles": report["cycles"], **windows}


def _build(asked: BuildAsked) -> Built:
    cfg = load(asked.config, asked.settings)
    return build_core(cfg, array=asked.array or _ARRAY, waves=asked.waves, fast=asked.fast)


SYSTEM = CoreSystem()
