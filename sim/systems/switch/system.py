"""A switch as a system: its configuration is a named switch, or the smallest that has the ports."""

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from rtl.contract.config_fields import built_values
from sim.errors import PlexusError
from sim.systems.switch.params import SWITCH_DOC, SWITCH_PARAMS, SwitchRun, parse_switch
from sim.systems.switch.report import show_switch
from sim.systems.switch.run import run_switch
from sim.systems.system import Asked, Offer, System

__all__ = ["SYSTEM", "SwitchSystem"]


class SwitchSystem(System):
    """A switch with an endpoint at every port."""

    name = "switch"

    @property
    def workloads(self) -> Mapping[str, Offer]:
        return {"switch": Offer(doc=SWITCH_DOC, params=SWITCH_PARAMS)}

    def resolve(self, asked: Asked) -> SwitchRun:
        if asked.check != "golden":
            raise PlexusError("switch has no --check: every flit is checked on its way")
        if asked.fast:
            raise PlexusError("switch has no --fast: that trains the model of a core")
        if asked.array is not None:
            raise PlexusError(
                "switch has no array: the form of its codec is a parameter, -p codec=native or structural"
            )
        if asked.waves is not None:
            raise PlexusError("switch takes --config, --set and parameters (-p): no --waves")
        settings, config = tuple(asked.settings), asked.config or ""
        return SwitchRun(
            params=parse_switch(asked.params), config=config, settings=settings, seed=asked.seed, out=asked.out
        )

    def group(self, run: SwitchRun) -> str:
        return json.dumps([built_values(run.cfg), run.params["codec"]], sort_keys=True)

    def run(self, run: SwitchRun, console: Console) -> dict[str, Any]:
        return run_switch(run, console)

    def show(self, report: Mapping[str, Any], console: Console) -> None:
        show_switch(report, console)

    def exact_figures(self, report: Mapping[str, Any]) -> Mapping[str, int]:
        waits = {name: report["latency_cycles"][name] for name in ("p50", "p99", "max")}
        return {"cycles": report["cycles"], "flits": report["flits_delivered"], **waits}


SYSTEM = SwitchSystem()
