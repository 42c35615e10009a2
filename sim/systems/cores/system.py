"""Several cores as a system: the workloads of programs that reach each other's memories."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from rtl.contract.config import load
from rtl.contract.roles import Uses, model_values, needed
from sim.errors import PlexusError
from sim.systems.cores.params import KINDS, CoresRun, parse_cores
from sim.systems.cores.report import show_cores
from sim.systems.cores.run import run_several
from sim.systems.system import Asked, Offer, System

__all__ = ["SYSTEM", "CoresSystem"]

_CONFIG = "small"


class CoresSystem(System):
    """Cores joined by delayed wires, beside as many golden machines."""

    name = "cores"

    @property
    def workloads(self) -> Mapping[str, Offer]:
        return {name: Offer(doc=kind.doc, params=kind.params) for name, kind in KINDS.items()}

    def resolve(self, asked: Asked) -> CoresRun:
        name = asked.workload
        if asked.check not in ("golden", "none"):
            raise PlexusError(f"{name} is checked with golden or none, not {asked.check!r}")
        if asked.fast:
            raise PlexusError(f"{name} has no --fast: that trains the model of a core alone")
        if asked.waves is not None:
            raise PlexusError(f"{name} has no --waves: those are of one core")
        if asked.array not in (None, "native", "structural"):
            raise PlexusError(f"the array is native or structural, not {asked.array!r}")
        config = _CONFIG if asked.config is None else asked.config
        return CoresRun(
            workload=name,
            params=parse_cores(name, asked.params),
            cfg=load(config, asked.settings),
            array=asked.array or "native",
            seed=asked.seed,
            check=asked.check,
            out=asked.out,
            file=config if config.endswith(".toml") else None,
        )

    def group(self, run: CoresRun) -> str:
        return json.dumps([model_values(needed(run.cfg, Uses.CLASSES)), run.array], sort_keys=True)

    def run(self, run: CoresRun, console: Console) -> dict[str, Any]:
        return run_several(run, console)

    def show(self, report: Mapping[str, Any], console: Console) -> None:
        show_cores(report, console)

    @property
    def ledger_sections(self) -> Sequence[str]:
        return ("tiny",)

    @property
    def has_page(self) -> bool:
        return False

    def exact_figures(self, report: Mapping[str, Any]) -> Mapping[str, int]:
        return {"cycles": report["cycles"]}


SYSTEM = CoresSystem()
