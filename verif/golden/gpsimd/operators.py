"""What the operators of firmware/gpsimd/lib mean, in NumPy: arrays [partitions, columns] in, arrays out.

`MEANINGS` has each by its name: keyword arguments are its operands and what the kernel says, results come in a dict by
the names of what is written.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["MEANINGS", "order"]

Arrays = dict[str, np.ndarray]

_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def order(row: np.ndarray) -> np.ndarray:
    """Places of a row by value, the largest first; of equal ones, zeros of both signs too, the lower place. NaNs come
    before all else and are equal."""
    if row.dtype.kind == "f":
        nans = np.isnan(row)
        return np.lexsort((-np.where(nans, np.inf, row).astype(np.float64), ~nans))
    return np.argsort(-row.astype(np.int64), kind="stable")


def _wrapped(values: np.ndarray, dtype: Any) -> np.ndarray:
    return (values.astype(np.int64) & 0xFFFF_FFFF).astype(np.uint32).view(dtype)


def _affine(shape: tuple[int, ...], offset: int, multiplier: int, steps: Sequence[int]) -> np.ndarray:
    """int32 of that shape; the first axis is that of partitions."""
    value = np.full(shape, offset, np.int64)
    for axis, step in enumerate((multiplier, *steps)):
        along = [1] * len(shape)
        along[axis] = shape[axis]
        value += step * np.arange(shape[axis], dtype=np.int64).reshape(along)
    return _wrapped(value, np.int32)


def iota(*, shape: tuple[int, ...], offset: int = 0, multiplier: int = 0, steps: Sequence[int]) -> Arrays:
    return {"dst": _affine(shape, offset, multiplier, steps)}


def affine_select(
    *,
    x: np.ndarray,
    relation: str = "ge",
    offset: int = 0,
    multiplier: int = 0,
    steps: Sequence[int],
    fill: float = 0,
) -> Arrays:
    holds = _RELATIONS[relation](_affine(x.shape, offset, multiplier, steps), 0)
    bits = np.where(holds, x.view(np.uint32), np.array(fill, x.dtype).view(np.uint32))
    return {"dst": bits.view(x.dtype)}


def gather(
    *, x: np.ndarray, index: np.ndarray, columns: int, lanes: int, mode: str = "columns", fill: float = 0
) -> Arrays:
    """`lanes`: partitions of a core; arrays begin at the first of one."""
    partitions = len(index)
    bits, at = x.view(np.uint32), index.astype(np.int64)
    if mode == "shared":
        spread = np.empty((partitions, columns), np.int64)
        for first in range(0, partitions, lanes):
            spread[first : first + lanes] = at[first : first + lanes].T.reshape(-1)[:columns]
        at = spread
    size = len(x) if mode == "partitions" else x.shape[1]
    inside = (at >= 0) & (at < size)
    safe = np.where(inside, at, 0)
    taken = np.take_along_axis(bits, safe, axis=0 if mode == "partitions" else 1)
    return {"dst": np.where(inside, taken, np.array(fill, x.dtype).view(np.uint32)).view(x.dtype)}


def topk(*, x: np.ndarray, k: int) -> Arrays:
    places = np.stack([order(row)[:k] for row in x])
    bits = np.take_along_axis(x.view(np.uint32), places, axis=1)
    return {"values": bits.view(x.dtype), "indices": places.astype(np.int32)}


def nonzero(*, x: np.ndarray, columns: int) -> Arrays:
    indices = np.full((len(x), columns), -1, np.int32)
    there = x != 0
    for row, places in zip(indices, map(np.flatnonzero, there), strict=True):
        row[: len(places)] = places[:columns]
    return {"indices": indices, "count": there.sum(axis=1).astype(np.int32)[:, None]}


def partition_reduce(*, x: np.ndarray, op: str = "sum") -> Arrays:
    if op == "sum":
        return {"dst": _wrapped(x.sum(axis=0, dtype=np.int64, keepdims=True), np.int32)}
    return {"dst": getattr(x, op)(axis=0, keepdims=True)}


def partition_broadcast(*, x: np.ndarray, partitions: int) -> Arrays:
    return {"dst": np.repeat(x, partitions, axis=0)}


def integer(*, x: np.ndarray, y: np.ndarray | int, op: str) -> Arrays:
    """Both as the exact numbers that they are, or their bits."""
    b = y if isinstance(y, np.ndarray) else np.full_like(x, np.array(y & 0xFFFF_FFFF, np.uint32).view(x.dtype))
    plain = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
    plain |= {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
    plain |= {"max": np.maximum, "min": np.minimum}
    if op in plain:
        with np.errstate(over="ignore"):
            return {"dst": plain[op](x, b)}
    by = b.view(np.uint32) % np.uint32(32)
    if op == "shift_left":
        return {"dst": (x.view(np.uint32) << by).view(x.dtype)}
    if op == "shift_right":
        return {"dst": (x.view(np.uint32) >> by).view(x.dtype)}
    return {"dst": x.view(np.int32) >> by.view(np.int32)}


def prefix_sum(*, x: np.ndarray, exclusive: bool = False) -> Arrays:
    sums = np.cumsum(x.astype(np.int64), axis=1)
    return {"dst": _wrapped(sums - x if exclusive else sums, x.dtype)}


def histogram(*, x: np.ndarray, bins: int) -> Arrays:
    counts = (x[:, :, None].astype(np.int64) == np.arange(bins)).sum(axis=1)
    return {"dst": counts.astype(np.int32)}


def route(*, logits: np.ndarray, experts: int, tokens: int, k: int, capacity: int) -> Arrays:
    """Logits [partitions, blocks * experts] of token block * partitions + partition."""
    by_token = logits.reshape(len(logits), -1, experts).swapaxes(0, 1).reshape(-1, experts)[:tokens]
    chosen = np.zeros((tokens, experts), bool)
    for token, row in enumerate(by_token):
        chosen[token, order(row)[:k]] = True
    lists = np.full((experts, capacity), -1, np.int32)
    for row, takes in zip(lists, chosen.T, strict=True):
        mine = np.flatnonzero(takes)[:capacity]
        row[: len(mine)] = mine
    return {"lists": lists, "counts": chosen.sum(axis=0).astype(np.int32)[:, None]}


MEANINGS: dict[str, Callable[..., Arrays]] = {
    one.__name__: one
    for one in (
        iota,
        affine_select,
        gather,
        topk,
        nonzero,
        partition_reduce,
        partition_broadcast,
        integer,
        prefix_sum,
        histogram,
        route,
    )
}
