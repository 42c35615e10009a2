"""What `layer` and `gemms` are asked for, and the operations that follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firmware.kernels.gemm_formats import GEMM_FORMATS
from firmware.models.operations import PHASES, Layer, Operation, operations
from firmware.models.table import models, read_model
from firmware.workload import Param, parse_params
from rtl.contract.config import Config
from rtl.contract.roles import needed
from sim.errors import PlexusError
from sim.layer_table import read_layers
from sim.run.variant import changes, default_folder, plain
from sim.systems.core.run import Run

__all__ = ["LAYER_WORKLOADS", "LayersRun", "asked_operations", "complete"]

TOKENS = 128
_COUNT_MAX = 1 << 20
_SCALED = Param(type=bool, default=False, doc="from three smaller runs where the cycles are a line; rows say so")
_DTYPE = Param(type=str, default="bf16", doc="format of the products", choices=tuple(GEMM_FORMATS))

LAYER_WORKLOADS: dict[str, tuple[str, dict[str, Param]]] = {
    "layer": (
        "a layer of a model, an operation after the other, with a row for each",
        {
            "model": Param(
                type=str, default="llama3-8b", doc=f"{', '.join(models())}, or a file of such sizes, FILE.toml"
            ),
            "phase": Param(type=str, default="prefill", doc="all tokens at once, or one more", choices=PHASES),
            "tokens": Param(
                type=int,
                default=None,
                doc=f"of a text, in decode those that are there with the new one; {TOKENS} if not given",
                minimum=1,
                maximum=_COUNT_MAX,
            ),
            "batch": Param(type=int, default=1, doc="texts, or images, at a time", minimum=1, maximum=_COUNT_MAX),
            "dtype": _DTYPE,
            "sliding": Param(type=bool, default=False, doc="a layer with the window, of a model that has such"),
            "scaled": _SCALED,
        },
    ),
    "gemms": (
        "the products, or convolutions as products, of a table in the columns of SCALE-Sim, with a row for each",
        {
            "file": Param(type=str, default="", doc="FILE.csv: Layer, M, N, K, or the columns of a convolution"),
            "dtype": _DTYPE,
            "out": Param(type=str, default="bf16", doc="format of the results", choices=("fp32", "bf16", "fp16")),
            "scaled": _SCALED,
        },
    ),
}
"""By name: what it is, and its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersRun:
    """What is asked for; the fields that a Run of a core has mean the same."""

    workload: str
    params: Mapping[str, Any]
    rows: tuple[Operation, ...]
    cfg: Config
    array: str = "native"
    seed: int = 0
    fast: bool = False
    check: str = "golden"
    model: Config | None = None
    out: Path | None = None
    file: str | None = None
    model_layers: int | None = None  # of the whole model; 1 if the rows are all of it

    @property
    def folder(self) -> Path:
        """Where report.json goes, and below it the reports of the operations."""
        if self.out:
            return self.out
        _, params = LAYER_WORKLOADS[self.workload]
        defaults = {name: p.default for name, p in params.items()} | {"run_seed": 0, "array": "native"}
        settings = dict(self.params) | {"run_seed": self.seed, "array": self.array}
        return default_folder(self.workload, self.cfg, settings, defaults)

    def needed(self, cfg: Config) -> Config:
        """`cfg` without GPSIMD cores, adders and classes: no operation gives them anything to do."""
        return needed(cfg)

    def by_cores(self, cfg: Config) -> dict[str, Any]:
        """What a model must have and no more: nothing, without GPSIMD cores."""
        return {}

    @property
    def built(self) -> Config:
        """Whose model runs its operations."""
        return Run(workload="gemm", params={}, cfg=self.cfg, model=self.model).built

    @property
    def config_words(self) -> list[str]:
        """What names the configuration on a command line, but for settings of a file."""
        base, changed = changes(self.cfg)
        words = ["--config", self.file or base]
        for key, value in ({} if self.file else changed).items():
            words += ["--set", f"{key}={plain(value)}"]
        return words


def complete(workload: str, settings: Any) -> dict[str, Any]:
    """All parameters from texts name=value. Errors: KernelError."""
    _, params = LAYER_WORKLOADS[workload]
    given = parse_params(settings, params, f"workload {workload}")
    return {name: given.get(name, param.default) for name, param in params.items()}


def asked_operations(workload: str, params: dict[str, Any]) -> tuple[Operation, ...]:
    """The rows. Errors: PlexusError, KernelError, one sentence, for a table with a hole."""
    if workload == "gemms":
        if not params["file"]:
            raise PlexusError("gemms needs a table of layers: -p file=FILE.csv")
        more = {name: params[name] for name in ("dtype", "out")}
        found: list[Operation] = []
        for name, sizes in read_layers(Path(params["file"])):
            values: dict[str, Any] = {key: int(text) if text.isdecimal() else text for key, text in sizes.items()}
            of_weights = values["m"] if "sparsity" in values else values["n"]
            found.append(Operation(name=name, workload="gemm", params=values | more, weights=values["k"] * of_weights))
        return tuple(found)
    model = read_model(params["model"])
    if params["tokens"] is None and model.family != "convolutions":
        params["tokens"] = TOKENS
    asked = {name: params[name] for name in ("phase", "tokens", "batch", "dtype", "sliding")}
    return tuple(operations(Layer(model=model, **asked)))
