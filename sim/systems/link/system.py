"""A link as a system: its configuration is a named link, or the one with the lanes; parameters change fields of it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rich.console import Console

from rtl.contract.config_fields import built_values
from sim.errors import PlexusError
from sim.systems.link.report import show_link
from sim.systems.link.run import LINK_DOC, LINK_PARAMS, LinkRun, parse_link, run_link
from sim.systems.system import Asked, Offer, System

__all__ = ["SYSTEM", "LinkSystem"]


class LinkSystem(System):
    """Two ports, and wires that damage flits between them."""

    name = "link"

    @property
    def workloads(self) -> Mapping[str, Offer]:
        return {"link": Offer(doc=LINK_DOC, params=LINK_PARAMS)}

    def resolve(self, asked: Asked) -> LinkRun:
        if asked.check != "golden":
            raise PlexusError("link has no --check: every packet is checked on its way")
        if asked.fast:
            raise PlexusError("link has no --fast: that trains the model of a core")
        if asked.array is not None:
            raise PlexusError("link has no array: the form of its codec is a parameter, -p codec=native or structural")
        if asked.waves is not None:
            raise PlexusError("link takes --config, --set and parameters (-p): no --waves")
        params, settings = parse_link(asked.params), tuple(asked.settings)
        said = any(text.partition("=")[0].strip() == "lanes" for text in asked.params)
        run = LinkRun(
            params=params,
            config="" if said or asked.config is None else asked.config,
            settings=settings,
            seed=asked.seed,
            out=asked.out,
        )
        lanes = run.cfg.lanes
        if said and lanes != params["lanes"]:
            raise PlexusError(f"lanes is {params['lanes']} as a parameter and {lanes} as a field; it is said once")
        return replace(run, params=params | {"lanes": lanes})

    def group(self, run: LinkRun) -> str:
        return json.dumps([built_values(run.cfg), run.params["codec"]], sort_keys=True)

    def run(self, run: LinkRun, console: Console) -> dict[str, Any]:
        return run_link(run, console)

    def show(self, report: Mapping[str, Any], console: Console) -> None:
        show_link(report, console)

    def exact_figures(self, report: Mapping[str, Any]) -> Mapping[str, int]:
        return {name: report[name] for name in ("cycles", "payload_flits", "replays", "recovery_flits")}


SYSTEM = LinkSystem()
