"""What the workloads of several cores take, and what is asked for."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firmware.cores.ensemble import Ensemble
from firmware.cores.forward import forward
from firmware.cores.ping_pong import ping_pong
from firmware.cores.projected_attention import projected_attention
from firmware.cores.remote import REMOTE_DIRECTIONS, remote
from firmware.cores.split_attention import split_attention
from firmware.kernels.dma_copy import ADDS
from firmware.makers import held, random_attention
from firmware.numbers import encode
from firmware.params import size
from firmware.views import MemoryFullError
from firmware.workload import Param, parse_params
from rtl.contract.config import Config
from sim.native.system import DELAY_MAX
from sim.run.variant import default_folder
from sim.systems.cores.joined import DELAY_CYCLES

__all__ = ["KINDS", "CoresRun", "Kind", "parse_cores"]

_WIRES = {
    "delay": Param(
        type=int,
        default=DELAY_CYCLES,
        doc="tensor cycles on the wire between two cores, one way",
        minimum=1,
        maximum=DELAY_MAX,
    ),
    "threads": Param(
        type=int,
        default=None,
        doc="that simulate the cores; one a processor if not given; bits and cycles do not depend on it",
        minimum=1,
        maximum=64,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A workload: `make` takes configuration, parameters and seed of the run."""

    doc: str
    params: Mapping[str, Param]
    make: Callable[[Config, Mapping[str, Any], int], Ensemble]


def _forward(cfg: Config, p: Mapping[str, Any], seed: int) -> Ensemble:
    rng = np.random.default_rng(seed)
    held("forward", p["tiles"] * cfg.partitions * p["columns"], tiles=p["tiles"], columns=p["columns"])
    x = rng.standard_normal((p["tiles"], cfg.partitions, p["columns"])).astype(np.float32)
    return forward(cfg, x, rng.standard_normal(p["cores"]).astype(np.float32), buffers=p["buffers"])


def _ping_pong(cfg: Config, p: Mapping[str, Any], seed: int) -> Ensemble:
    words = np.random.default_rng(seed).integers(0, 1 << 32, p["bytes"] // 4, dtype=np.uint32)
    return ping_pong(cfg, words, p["rounds"])


def _remote(cfg: Config, p: Mapping[str, Any], seed: int) -> Ensemble:
    rng, shape = np.random.default_rng(seed), (p["tiles"], cfg.partitions, p["columns"])
    held("remote", math.prod(shape), tiles=p["tiles"], columns=p["columns"])
    if p["add"] in ("fp32", "bf16"):
        x = encode(rng.standard_normal(shape).astype(np.float32), p["add"])
    else:
        x = rng.integers(0, 1 << 32, shape, dtype=np.uint32)
    return remote(cfg, x, direction=p["direction"], spaces=(p["near"], p["far"]), add=p["add"])


def _split_attention(cfg: Config, p: Mapping[str, Any], seed: int) -> Ensemble:
    rng = np.random.default_rng(seed)
    q, k, v = random_attention("split_attention", p, rng)
    if p["width"] is not None:
        rows = p["heads"] * v.shape[2]
        held("split_attention", rows * p["width"], heads=p["heads"], width=p["width"])
        weights = rng.standard_normal((rows, p["width"]), np.float32) / np.float32(np.sqrt(rows))
        return projected_attention(cfg, q, k, v, weights, cores=p["cores"], causal=p["causal"])
    return split_attention(cfg, q, k, v, cores=p["cores"], causal=p["causal"], buffers=p["buffers"])


KINDS: Mapping[str, Kind] = {
    "forward": Kind(
        doc="cores in a row: tiles of FP32 stream from SBUF to SBUF, each core adds a number",
        params={
            "cores": Param(type=int, default=2, doc="in the row", minimum=1, maximum=16),
            "tiles": Param(type=int, default=32, doc="that go through all of them", minimum=2, maximum=4096),
            "columns": Param(
                type=int, default=240, doc="FP32 numbers of a tile on each partition", minimum=1, maximum=4096
            ),
            "buffers": Param(type=int, default=2, doc="places for tiles that come, a core", minimum=1, maximum=8),
            **_WIRES,
        },
        make=_forward,
    ),
    "ping_pong": Kind(
        doc="two cores write some bytes to each other's SBUF with a signal, in turn",
        params={
            "rounds": Param(type=int, default=32, doc="there and back", minimum=2, maximum=4096),
            "bytes": Param(type=int, default=64, doc="that each writes; 4 are a word", minimum=4, maximum=4096),
            **_WIRES,
        },
        make=_ping_pong,
    ),
    "remote": Kind(
        doc="bulk copies, or sums, between two cores, from and to SBUF or HBM",
        params={
            "direction": Param(
                type=str,
                default="write",
                doc="core 0 writes to core 1, reads from it, or both write at a time",
                choices=tuple(REMOTE_DIRECTIONS),
            ),
            "near": Param(type=str, default="sbuf", doc="memory of core 0", choices=("sbuf", "hbm")),
            "far": Param(type=str, default="sbuf", doc="memory of core 1", choices=("sbuf", "hbm")),
            "add": Param(type=str, default=None, doc="add in the SBUF of who gets the tiles", choices=tuple(ADDS)),
            "tiles": Param(type=int, default=16, doc="with a signal each", minimum=2, maximum=4096),
            "columns": Param(type=int, default=64, doc="numbers of a tile on each partition", minimum=1, maximum=4096),
            **_WIRES,
        },
        make=_remote,
    ),
    "split_attention": Kind(
        doc="attention of random normal Q, K, V, some heads a core; results stream to core 0 tile by tile",
        params={
            "cores": Param(type=int, default=2, doc="that share the heads", minimum=1, maximum=16),
            "heads": size(4, "heads of queries; as many a core"),
            "seq": size(128, "tokens: keys and values of a head"),
            "head": size(32, "dimensions of a query and a key"),
            "causal": Param(type=bool, default=False, doc="a query sees the keys up to its own"),
            "queries": size(None, "the last queries of seq, 1 for a token that is decoded; seq if not given"),
            "kv_heads": size(None, "heads of keys and values, each shared by a group of heads; as many as heads"),
            "values": size(None, "dimensions of a value, if not those of a query and a key"),
            "width": size(None, "columns of an output projection in core 0; none if not given"),
            "buffers": Param(
                type=int,
                default=2,
                doc="places in core 0 for tiles of each other core; with width each tile has its own",
                minimum=1,
                maximum=8,
            ),
            **_WIRES,
        },
        make=_split_attention,
    ),
}
"""By name."""


def parse_cores(workload: str, settings: Sequence[str]) -> dict[str, Any]:
    """All parameters from texts `name=value`. Errors: KernelError, one sentence."""
    known = KINDS[workload].params
    return {name: p.default for name, p in known.items()} | parse_params(settings, known, workload)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoresRun:
    """What is asked for; `out`: folder of the report, by default under build/; `file`: of the configuration."""

    workload: str
    params: Mapping[str, Any]
    cfg: Config
    array: str = "native"
    seed: int = 0
    check: str = "golden"
    out: Path | None = None
    file: str | None = None

    @property
    def threads(self) -> int:
        """How many simulate the cores."""
        cores = self.params.get("cores", 2)
        return min(cores, self.params["threads"] or os.cpu_count() or 1)

    @property
    def folder(self) -> Path:
        """Where report.json goes."""
        plain = parse_cores(self.workload, ()) | {"run_seed": 0, "array": "native"}
        settings = dict(self.params) | {"run_seed": self.seed, "array": self.array}
        return self.out or default_folder(self.workload, self.cfg, settings, plain)

    def ensemble(self) -> Ensemble:
        """The programs. Errors: KernelError; MemoryFullError names the sizes if a memory is too small for them."""
        try:
            return KINDS[self.workload].make(self.cfg, self.params, self.seed)
        except MemoryFullError as error:
            sizes = ", ".join(f"{name}={value}" for name, value in self.params.items() if value)
            raise MemoryFullError(
                f"{self.workload} of {sizes} does not fit the memories of {self.cfg.name}: {error}"
            ) from None
