"""Layers as a system: what runs and builds a core serves their operations too."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console

from firmware.models.table import read_model
from rtl.contract.config import load
from sim.build.model import Built
from sim.errors import PlexusError
from sim.run.checking import need_check
from sim.systems.core.system import CoreSystem
from sim.systems.layers.params import LAYER_WORKLOADS, LayersRun, asked_operations, complete
from sim.systems.layers.run import run_layers
from sim.systems.layers.show import show_layers
from sim.systems.system import Asked, BuildAsked, Offer

__all__ = ["SYSTEM", "LayersSystem"]

_CONFIG = "small"


class LayersSystem(CoreSystem):
    """Operations one after another on one core."""

    name = "layers"

    @property
    def workloads(self) -> Mapping[str, Offer]:
        return {name: Offer(doc=doc, params=params) for name, (doc, params) in LAYER_WORKLOADS.items()}

    @property
    def tops(self) -> Mapping[str, Callable[[BuildAsked], Built]]:
        return {}

    def resolve(self, asked: Asked) -> LayersRun:
        if asked.waves is not None:
            raise PlexusError(f"{asked.workload} has no --waves: run one of its operations, as its row says how")
        config = _CONFIG if asked.config is None else asked.config
        cfg = load(config, asked.settings)
        params = complete(asked.workload, asked.params)
        return LayersRun(
            workload=asked.workload,
            rows=asked_operations(asked.workload, params),
            params=params,
            cfg=cfg,
            array="native" if asked.array is None else asked.array,
            seed=asked.seed,
            fast=asked.fast,
            check=need_check(asked.check),
            model=None if asked.model is None else load(config, asked.model),
            out=asked.out,
            file=config if config.endswith(".toml") else None,
            model_layers=read_model(params["model"]).layers if asked.workload == "layer" else None,
        )

    def run(self, run: LayersRun, console: Console) -> dict[str, Any]:
        return run_layers(run, console)

    def show(self, report: Mapping[str, Any], console: Console) -> None:
        show_layers(report, console)

    @property
    def ledger_sections(self) -> Sequence[str]:
        return ()

    def exact_figures(self, report: Mapping[str, Any]) -> Mapping[str, int]:
        return {"cycles": report["cycles"], "macs": report["macs"]}


SYSTEM = LayersSystem()
