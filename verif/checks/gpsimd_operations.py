"""Random operations of the GPSIMD library: shapes, places, ties, special numbers, empty and full results."""

from collections.abc import Callable
from typing import Any

import numpy as np

from firmware.kernels.gpsimd_operators import Operation
from rtl.contract.config import Config
from rtl.contract.gpsimd import lanes
from rtl.contract.gpsimd_operators import K_MAX, Integer, Reduction, Relation

__all__ = ["OPERATIONS", "random_operation"]

_SPECIAL = np.array(
    [0, 0x8000_0000, 1, 0x8000_0001, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0xFFC0_0001, 0x3F80_0000, 0x7FFF_FFFF],
    np.uint32,
)
"""As FP32: zeros, subnormal numbers, infinities, NaNs; as integers their ends."""


class Maker:
    """Sizes and values for a configuration."""

    def __init__(self, cfg: Config, seed: int) -> None:
        self.cfg, self.rng = cfg, np.random.default_rng(seed)
        p = cfg.partitions
        kind = int(self.rng.integers(4))
        self.rows = (1, p, int(self.rng.integers(1, p + 1)), lanes(p))[kind]
        self.start = int(self.rng.integers(0, p - self.rows + 1))

    def number(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def one_of(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def columns(self) -> int:
        return self.one_of(1, 2, self.number(3, 9), self.number(10, 40))

    def values(self, rows: int, columns: int, dtype: str) -> np.ndarray:
        """Few different values or many, special ones among them, or one everywhere."""
        shape, rng = (rows, columns), self.rng
        kind = self.number(0, 3)
        if kind == 0:
            bits = np.full(shape, self.one_of(*_SPECIAL), np.uint32)
        elif kind == 1:
            bits = rng.choice(_SPECIAL, shape)
        elif kind == 2:
            small = rng.integers(-3, 4, shape)
            bits = (small.astype(np.float32) if dtype == "fp32" else small.astype(np.int32)).view(np.uint32)
        else:
            bits = rng.integers(0, 1 << 32, shape, np.uint64).astype(np.uint32)
        return bits.view(np.float32 if dtype == "fp32" else dtype)

    def whole(self) -> str:
        return self.one_of("int32", "uint32")

    def everywhere(self, *names: str) -> dict[str, int]:
        return dict.fromkeys(names, self.start)


def _iota(m: Maker) -> Operation:
    columns, limit = m.columns(), (1 << 15) - 1
    ends = -(1 << 31), (1 << 31) - 1
    said: dict[str, Any] = {"offset": m.number(*ends), "multiplier": m.number(*ends)}
    said["steps"] = (m.one_of(0, 1, -1, m.number(-limit - 1, limit)),)
    shape = (m.rows, columns)
    outputs = {"dst": (*shape, m.whole())}
    return Operation(
        operator="iota", inputs={}, outputs=outputs, said=said, means={"shape": shape}, start=m.everywhere("dst")
    )  # fmt: skip


def _affine_select(m: Maker) -> Operation:
    columns, dtype = m.columns(), m.one_of("fp32", "int32", "uint32")
    said = {"offset": m.number(-9, 9), "multiplier": m.one_of(0, 1, -1, m.number(-(1 << 15), (1 << 15) - 1))}
    said |= {"steps": (m.one_of(0, 1, -1, m.number(-99, 99)),), "fill": m.one_of(0, 7, 2 if dtype != "fp32" else -1.5)}
    said["relation"] = m.one_of(*(one.name.lower() for one in Relation))
    inputs = {"x": m.values(m.rows, columns, dtype)}
    outputs = {"dst": (m.rows, columns, dtype)}
    return Operation(
        operator="affine_select", inputs=inputs, outputs=outputs, said=said, start=m.everywhere("x", "dst")
    )  # fmt: skip


def _gather(m: Maker) -> Operation:
    mode, dtype, wide = m.one_of("columns", "shared", "partitions"), m.one_of("fp32", "int32"), lanes(m.cfg.partitions)
    size, columns = m.columns(), m.columns()
    start = m.everywhere("x", "index", "dst")
    rows = m.rows
    if mode == "partitions":
        columns, rows = size, m.number(1, m.cfg.partitions)
        start["x"] = m.number(0, m.cfg.partitions - rows)
        index = (m.rows, columns)
    elif mode == "shared":
        start = dict.fromkeys(start, m.start - m.start % wide)
        index = (rows, -(-columns // (rows % wide or wide)))
    else:
        index = (rows, columns)
    x = m.values(rows, size, dtype)
    top = len(x) if mode == "partitions" else size
    inputs = {"x": x, "index": m.rng.integers(-1, top + 1, index).astype(np.int32)}
    said = {"mode": mode, "fill": m.one_of(0, 3)}
    return Operation(
        operator="gather",
        inputs=inputs,
        outputs={"dst": (m.rows, columns, dtype)},
        said=said,
        means={"columns": columns, "lanes": wide},
        start=start,
    )


def _topk(m: Maker) -> Operation:
    columns, dtype = m.one_of(m.columns(), m.columns(), 77), m.one_of("fp32", "int32")
    k = m.one_of(1, min(columns, K_MAX), min(8, columns))
    outputs = {"values": (m.rows, k, dtype), "indices": (m.rows, k, m.whole())}
    return Operation(
        operator="topk",
        inputs={"x": m.values(m.rows, columns, dtype)},
        outputs=outputs,
        means={"k": k},
        start=m.everywhere("x", "values", "indices"),
    )


def _nonzero(m: Maker) -> Operation:
    columns, dtype = m.columns(), m.one_of("fp32", "int32", "uint32")
    room = m.one_of(1, columns, columns + 2)
    outputs = {"indices": (m.rows, room, "int32"), "count": (m.rows, 1, "int32")}
    return Operation(
        operator="nonzero",
        inputs={"x": m.values(m.rows, columns, dtype)},
        outputs=outputs,
        means={"columns": room},
        start=m.everywhere("x", "indices", "count"),
    )


def _partition_reduce(m: Maker) -> Operation:
    columns = m.one_of(m.columns(), 400)
    return Operation(
        operator="partition_reduce",
        inputs={"x": m.values(m.rows, columns, "int32")},
        outputs={"dst": (1, columns, "int32")},
        said={"op": m.one_of(*(one.name.lower() for one in Reduction))},
        start={"x": m.start, "dst": m.number(0, m.cfg.partitions - 1)},
    )


def _partition_broadcast(m: Maker) -> Operation:
    columns, dtype = m.columns(), m.one_of("fp32", "int32", "uint32")
    return Operation(
        operator="partition_broadcast",
        inputs={"x": m.values(1, columns, dtype)},
        outputs={"dst": (m.rows, columns, dtype)},
        means={"partitions": m.rows},
        start={"dst": m.start, "x": m.number(0, m.cfg.partitions - 1)},
    )


def _integer(m: Maker) -> Operation:
    columns, op = m.columns(), m.one_of(*Integer)
    signed = op in (Integer.MAX, Integer.MIN, Integer.SHIFT_RIGHT_SIGNED)
    dtype = "int32" if signed else m.whole()
    inputs, said = {"x": m.values(m.rows, columns, dtype)}, {"op": op.name.lower()}
    if m.number(0, 2):
        inputs["y"] = m.values(m.rows, columns, dtype)
    else:
        said["y"] = m.one_of(0, 1, -1, 31, 32, m.number(-(1 << 31), (1 << 31) - 1))
    return Operation(
        operator="integer",
        inputs=inputs,
        outputs={"dst": (m.rows, columns, dtype)},
        said=said,
        start=m.everywhere("x", "y", "dst"),
    )


def _prefix_sum(m: Maker) -> Operation:
    columns, dtype = m.columns(), m.whole()
    return Operation(
        operator="prefix_sum",
        inputs={"x": m.values(m.rows, columns, dtype)},
        outputs={"dst": (m.rows, columns, dtype)},
        said={"exclusive": bool(m.number(0, 1))},
        start=m.everywhere("x", "dst"),
    )


def _histogram(m: Maker) -> Operation:
    columns, bins = m.columns(), m.one_of(1, 5, 64)
    x = m.one_of(m.rng.integers(-2, bins + 3, (m.rows, columns)).astype(np.int32), m.values(m.rows, columns, "int32"))
    return Operation(
        operator="histogram",
        inputs={"x": x},
        outputs={"dst": (m.rows, bins, "int32")},
        means={"bins": bins},
        start=m.everywhere("x", "dst"),
    )


def _route(m: Maker) -> Operation:
    experts, blocks = m.number(1, min(8, m.cfg.partitions)), m.number(1, 3)
    k, tokens = m.one_of(1, experts, m.number(1, experts)), m.number(1, m.rows * blocks)
    room = m.one_of(tokens, 1, m.number(1, tokens))
    outputs = {"lists": (experts, room, "int32"), "counts": (experts, 1, "int32")}
    first = m.number(0, m.cfg.partitions - experts)
    return Operation(
        operator="route",
        inputs={"logits": m.values(m.rows, blocks * experts, m.one_of("fp32", "int32"))},
        outputs=outputs,
        said={"tokens": tokens, "k": k},
        means={"experts": experts, "capacity": room},
        start={"logits": m.start, "lists": first, "counts": first},
        reads=tokens * experts,
    )


OPERATIONS: dict[str, Callable[[Maker], Operation]] = {
    "iota": _iota,
    "affine_select": _affine_select,
    "gather": _gather,
    "topk": _topk,
    "nonzero": _nonzero,
    "partition_reduce": _partition_reduce,
    "partition_broadcast": _partition_broadcast,
    "integer": _integer,
    "prefix_sum": _prefix_sum,
    "histogram": _histogram,
    "route": _route,
}


def random_operation(operator: str, cfg: Config, seed: int) -> Operation:
    """The same for the same seed."""
    return OPERATIONS[operator](Maker(cfg, seed))
