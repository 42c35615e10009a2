"""Workload `gpsimd` with program=NAME: an operator of the library on random values, beside what it means."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from firmware.kernel import Kernel, KernelError
from firmware.numbers import bits_dtype
from firmware.program import Meaning, Program
from firmware.views import MemoryFullError, TileView
from rtl.contract.config import Config
from rtl.contract.gpsimd import lanes

__all__ = ["PROGRAMS", "Operation", "operator_program", "random_operator", "settle_program"]

_FORMATS = {"float32": "fp32", "int32": "int32", "uint32": "uint32"}


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operator with its operands. `inputs` [partitions, columns] by the names of k.gpsimd, `outputs` as (partitions,
    columns, format); `start`: first partitions, 0 if not named; `said`: what else the kernel says; `means`: what else
    the model in NumPy is told; `reads`: elements of the inputs that are loaded, if not all once."""

    operator: str
    inputs: dict[str, np.ndarray]
    outputs: dict[str, tuple[int, int, str]]
    said: dict[str, Any] = field(default_factory=dict)
    means: dict[str, Any] = field(default_factory=dict)
    start: dict[str, int] = field(default_factory=dict)
    reads: int | None = None


def operator_program(cfg: Config, of: Operation) -> Program:
    """Copies in, the operator, copies out. KernelError."""
    k = Kernel(cfg, of.operator)
    views: dict[str, TileView] = {}
    for name, array in of.inputs.items():
        dtype = _FORMATS[array.dtype.name]
        rows, columns = array.shape
        tile = k.sbuf(f"{name} tile", partitions=rows, columns=columns, dtype=dtype, start=of.start.get(name, 0))
        views[name] = tile[:, :]
        bits = np.ascontiguousarray(array).view(bits_dtype(dtype))
        k.dma(views[name], k.hbm(f"{name} given", array.shape, dtype, bits)[:, :])
    for name, (rows, columns, dtype) in of.outputs.items():
        tile = k.sbuf(f"{name} tile", partitions=rows, columns=columns, dtype=dtype, start=of.start.get(name, 0))
        views[name] = tile[:, :]
    getattr(k.gpsimd, of.operator)(**views, **of.said)
    sizes = [rows * columns for rows, columns, _ in of.outputs.values()]
    for name, (rows, columns, dtype) in of.outputs.items():
        k.dma(k.hbm(name, (rows, columns), dtype)[:, :], views[name])
    given = [array.size for array in of.inputs.values()] if of.reads is None else [of.reads]
    program = k.program()
    kinds = {name: np.dtype(np.float32 if dtype == "fp32" else dtype) for name, (_, _, dtype) in of.outputs.items()}
    program.arrays = lambda outputs: {name: outputs[name].view(kind) for name, kind in kinds.items()}
    program.meaning = Meaning(
        operator=of.operator,
        given=of.inputs | of.said | of.means,
        elements=max(sizes + given),
        loads=sum(given),
        stores=sum(sizes),
    )
    return program


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What the parameters say, and where random values come from."""

    cfg: Config
    params: Mapping[str, Any]
    rng: np.random.Generator

    def __getattr__(self, name: str) -> Any:
        return self.params[name]

    @property
    def rows(self) -> int:
        return self.params["partitions"] or self.cfg.partitions

    def values(self, columns: int | None = None, rows: int | None = None) -> np.ndarray:
        """Of the format that is asked for; whole numbers are of 32 bits."""
        shape = rows or self.rows, columns or self.params["columns"]
        if (size := 4 * shape[1]) > self.cfg.sbuf.partition_bytes:  # before they are drawn
            raise MemoryFullError(
                f"{shape[1]} columns need {size} bytes of a partition, and SBUF has {self.cfg.sbuf.partition_bytes}"
            )
        if self.params.get("dtype") == "fp32":
            return self.rng.standard_normal(shape, np.float32)
        return self.rng.integers(-(1 << 31), 1 << 31, shape, np.int64).astype(np.int32)


def _iota(s: _Sizes) -> Operation:
    said = {"offset": s.offset, "multiplier": s.multiplier, "steps": (s.step,)}
    outputs = {"dst": (s.rows, s.columns, "int32")}
    return Operation(operator="iota", inputs={}, outputs=outputs, said=said, means={"shape": (s.rows, s.columns)})


def _affine_select(s: _Sizes) -> Operation:
    said = {"offset": s.offset, "multiplier": s.multiplier, "steps": (s.step,), "relation": s.relation, "fill": s.fill}
    outputs = {"dst": (s.rows, s.columns, s.dtype)}
    return Operation(operator="affine_select", inputs={"x": s.values()}, outputs=outputs, said=said)


def _gather(s: _Sizes) -> Operation:
    inputs = {"x": s.values()}
    size, columns = (s.rows if s.mode == "partitions" else s.columns), s.columns
    wide = lanes(s.cfg.partitions)
    shared = -(-columns // (s.rows % wide or wide))  # the last core may have the fewest
    index = (s.rows, shared if s.mode == "shared" else columns)
    inputs["index"] = s.rng.integers(0, size, index, np.int64).astype(np.int32)
    outputs = {"dst": (s.rows, columns, s.dtype)}
    said, means = {"mode": s.mode}, {"columns": columns, "lanes": wide}
    return Operation(operator="gather", inputs=inputs, outputs=outputs, said=said, means=means)


def _topk(s: _Sizes) -> Operation:
    outputs = {"values": (s.rows, s.k, s.dtype), "indices": (s.rows, s.k, "int32")}
    return Operation(operator="topk", inputs={"x": s.values()}, outputs=outputs, means={"k": s.k})


def _nonzero(s: _Sizes) -> Operation:
    x, room = s.values(), s.capacity or s.columns
    x[s.rng.random(x.shape) * 100 >= s.percent] = 0
    outputs = {"indices": (s.rows, room, "int32"), "count": (s.rows, 1, "int32")}
    return Operation(operator="nonzero", inputs={"x": x}, outputs=outputs, means={"columns": room})


def _partition_reduce(s: _Sizes) -> Operation:
    outputs = {"dst": (1, s.columns, "int32")}
    return Operation(operator="partition_reduce", inputs={"x": s.values()}, outputs=outputs, said={"op": s.op})


def _partition_broadcast(s: _Sizes) -> Operation:
    outputs = {"dst": (s.rows, s.columns, s.dtype)}
    inputs = {"x": s.values(rows=1)}
    return Operation(
        operator="partition_broadcast", inputs=inputs, outputs=outputs, means={"partitions": s.rows}
    )  # fmt: skip


def _integer(s: _Sizes) -> Operation:
    inputs, said = {"x": s.values()}, {"op": s.op}
    if s.number is None:
        inputs["y"] = s.values()
    else:
        said["y"] = s.number
    return Operation(operator="integer", inputs=inputs, outputs={"dst": (s.rows, s.columns, "int32")}, said=said)


def _prefix_sum(s: _Sizes) -> Operation:
    outputs = {"dst": (s.rows, s.columns, "int32")}
    said = {"exclusive": s.exclusive}
    return Operation(operator="prefix_sum", inputs={"x": s.values()}, outputs=outputs, said=said)


def _histogram(s: _Sizes) -> Operation:
    x = s.rng.integers(0, s.bins, (s.rows, s.columns), np.int64).astype(np.int32)
    outputs = {"dst": (s.rows, s.bins, "int32")}
    return Operation(operator="histogram", inputs={"x": x}, outputs=outputs, means={"bins": s.bins})


def _route(s: _Sizes) -> Operation:
    blocks, room = -(-s.tokens // s.rows), s.capacity or s.tokens
    logits = s.values(blocks * s.experts)
    outputs = {"lists": (s.experts, room, "int32"), "counts": (s.experts, 1, "int32")}
    said = {"tokens": s.tokens, "k": s.k}
    means, reads = {"experts": s.experts, "capacity": room}, s.tokens * s.experts
    return Operation(
        operator="route", inputs={"logits": logits}, outputs=outputs, said=said, means=means, reads=reads
    )  # fmt: skip


_EACH = {"partitions": None, "columns": 256, "seed": None}
PROGRAMS: dict[str, tuple[Callable[[_Sizes], Operation], dict[str, Any]]] = {
    "iota": (_iota, _EACH | {"offset": 0, "multiplier": 0, "step": 1}),
    "affine_select": (
        _affine_select,
        _EACH | {"offset": 0, "multiplier": 1, "step": -1, "relation": "ge", "fill": 0.0, "dtype": "fp32"},
    ),
    "gather": (_gather, _EACH | {"mode": "columns", "dtype": "fp32"}),
    "topk": (_topk, _EACH | {"columns": 1024, "k": 8, "dtype": "fp32"}),
    "nonzero": (_nonzero, _EACH | {"capacity": None, "percent": 50, "dtype": "int32"}),
    "partition_reduce": (_partition_reduce, _EACH | {"op": "sum"}),
    "partition_broadcast": (_partition_broadcast, _EACH | {"dtype": "fp32"}),
    "integer": (_integer, _EACH | {"op": "add", "number": None}),
    "prefix_sum": (_prefix_sum, _EACH | {"exclusive": False}),
    "histogram": (_histogram, _EACH | {"bins": 64}),
    "route": (
        _route,
        {"partitions": None, "tokens": 64, "experts": 8, "k": 2, "capacity": None, "dtype": "fp32", "seed": None},
    ),
}
"""By name, which is that of k.gpsimd: what it does, and its parameters with their defaults."""


def settle_program(params: dict[str, Any], given: set[str]) -> dict[str, Any]:
    """Parameters of the chosen program, with its defaults. KernelError for another name, with the nearest, and for
    parameters that it does not take."""
    name = params["program"]
    if name not in PROGRAMS:
        like = get_close_matches(name, PROGRAMS, 1, 0)
        raise KernelError(f"there is no program {name!r}; the nearest is {like[0]!r} of {', '.join(PROGRAMS)}")
    takes = PROGRAMS[name][1]
    if extra := sorted(given - {"program", "out", *takes}):
        raise KernelError(f"program {name} takes {', '.join(takes)}, and no {extra[0]!r}")
    return {"program": name, "out": params["out"]} | {
        key: default if params[key] is None else params[key] for key, default in takes.items()
    }


def random_operator(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    """A program of settled parameters."""
    maker, _ = PROGRAMS[params["program"]]
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    if params["partitions"] is not None and params["partitions"] > cfg.partitions:
        raise KernelError(f"partitions={params['partitions']} are more than {cfg.name} has, {cfg.partitions}")
    return operator_program(cfg, maker(_Sizes(cfg, params, rng)))
