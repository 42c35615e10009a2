"""What stands in the rows of random beats of the systolic array: codes of every kind, scales, tags."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rtl.contract.kinds import DOTS, Kind
from rtl.contract.sparsity import Sparsity
from verif.agents.values import random_codes

__all__ = ["QuadrantCodes", "random_tags"]

_FAR = np.array([0x78, 0x48, 0x01, 0x00], np.uint32)
"""E5M2 codes of 2^15, 2^3, 2^-16 and 0. Such rows meet in 2^30 + 2^6 + 2^-32: as far apart as products get, and just
beyond a tie of FP32."""


Codes = tuple[NDArray[np.uint64], NDArray[np.uint8]]

_AT_ONCE = 64
"""Quadrants that are made together: a NumPy call for a few rows costs what one for hundreds does."""


class QuadrantCodes:
    """Random codes and scales for the `share` rows of a quadrant; random bits in what a kind leaves out."""

    def __init__(self, rng: np.random.Generator, share: int):
        self.rng = rng
        self.share = share
        self._stock: dict[tuple[Kind, str, str], list[Codes]] = defaultdict(list)

    def some(self, kind: Kind, dtype: str, flavour: str) -> Codes:
        """Codes [share] and scales [share] of the next quadrant of this sort."""
        stock = self._stock[kind, dtype, flavour]
        if not stock:
            make = _sparse_codes if kind == Kind.SPARSE else _dense_codes
            codes, scales = make(self.rng, (_AT_ONCE, self.share), kind, dtype, flavour)
            stock.extend(zip(codes.astype(np.uint64), scales, strict=True))
        return stock.pop()


def _sparse_codes(
    rng: np.random.Generator, shape: tuple[int, int], _: Kind, dtype: str, flavour: str
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Four numbers a row; codes and scales of `shape` (quadrants, rows)."""
    numbers = random_codes(rng, (*shape, 4), dtype, flavour).astype(np.uint64)
    codes = np.bitwise_or.reduce(numbers << np.arange(0, 64, 16, dtype=np.uint64), axis=2)
    return codes, rng.integers(0, 256, shape).astype(np.uint8)


def _dense_codes(
    rng: np.random.Generator, shape: tuple[int, int], kind: Kind, dtype: str, flavour: str
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """The same of kinds that take 32 bits."""
    dont_care = rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)
    scales = rng.integers(0, 256, shape).astype(np.uint8)
    if kind in DOTS:
        elements = random_codes(rng, (*shape, 4), dtype, flavour)
        if flavour == "narrow" and dtype == "e5m2":
            signs = rng.integers(0, 2, (*shape, 4)).astype(np.uint32) << np.uint32(7)
            elements = np.where(rng.random((*shape, 1)) < 0.8, _FAR | signs, elements)
        codes = (elements << np.arange(0, 32, 8, dtype=np.uint32)).sum(axis=2).astype(np.uint32)
        if kind == Kind.QUAD:
            spread = 70 if flavour == "subnormal" else 5
            middle = 127 - 60 if flavour == "subnormal" else 127
            near = rng.integers(middle - spread, middle + spread, shape)
            wild = (rng.random(shape) < 0.02) & (flavour in ("special", "bits"))
            scales = np.where(wild, 255, near).astype(np.uint8)
            alone = np.flatnonzero(rng.random(len(scales)) < 0.03)
            scales[alone, rng.integers(0, shape[1], len(alone))] = 255
        elif kind == Kind.QUAD_E4M3 and flavour not in ("special", "bits"):
            scales = random_codes(rng, shape, "e4m3fn", "normal").astype(np.uint8)
        return (codes & 0xFFFF | dont_care & 0xFFFF0000 if kind == Kind.PAIR else codes).astype(np.uint32), scales
    if kind == Kind.RAW:
        return random_codes(rng, shape, "fp32", "special"), scales
    name = "fp32" if kind in (Kind.HIGH, Kind.LOW) or dtype == "tf32" else dtype
    codes = random_codes(rng, shape, name, flavour)
    size = {"bf16": 16, "fp16": 16, "fp32": 32}.get(name, 8)
    kept = np.uint32((1 << size) - 1)
    return codes & kept | dont_care & ~kept, scales


def random_tags(rng: np.random.Generator, patterns: Sequence[Sparsity], rows: int) -> NDArray[np.uint8]:
    """Tags of all rows, [rows], for a pattern a quadrant: they ascend in each bus of a pattern.

    Now and then anything, for the array does not care. Four aligned rows have the pattern of their first one.
    """
    if rng.random() < 0.1:
        return rng.integers(0, 16, rows).astype(np.uint8)
    tags = np.zeros(rows, np.uint8)
    quadrant = np.arange(rows) // 4 * 4 // (rows // len(patterns))
    for pattern in set(patterns):
        order = rng.permuted(np.tile(np.arange(pattern.group), (rows // pattern.kept, 1)), axis=1)
        ascending = np.sort(order[:, : pattern.kept], axis=1).ravel()
        here = np.array([p is pattern for p in patterns])[quadrant]
        tags[here] = ascending[here]
    return tags
