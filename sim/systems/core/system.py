"""A core as a system: every program of the firmware, on any configuration of a core."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console

from firmware.workloads import WORKLOADS, find_workload
from rtl.contract.config import load
from sim.build.model import Built
from sim.report import terminal
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
        cfg = load(config, asked.settings)
        return Run(
            workload=asked.workload,
            params=find_workload(asked.workload).parse(asked.params),
            cfg=cfg,
            array=_ARRAY if asked.array is None else asked.array,
            seed=asked.seed,
            waves=asked.waves,
            fast=asked.fast,
            trace=asked.trace,
            out=asked.out,
            file=config if config.endswith(".toml") else None,
        )

    def run(self, run: Run, console: Console) -> dict[str, Any]:
        return core_run.run_workload(run, console)

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
