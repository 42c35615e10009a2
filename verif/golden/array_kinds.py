"""Golden model of the array for every kind of element: operands as they lie in SBUF, weights, chains of dot products.

A dot product of a row goes through float64 where its exact value has at most 53 bits: then a sum in any order, the
scales and the one rounding to FP32 are what integers give (verif.golden.mx, used for all other formats; the tests
compare the two). Order of the sums: docs/numerics.md.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.formats import FORMATS, by_code
from rtl.contract.kinds import Kind
from verif.golden import mx
from verif.golden.conversion import from_fp32, to_fp32
from verif.golden.groups import bytes_of, scale_rows_of, scaled
from verif.golden.memory import Memory
from verif.golden.numeric import U32, canonical
from verif.golden.sparsity import BUS_ROWS, moving_numbers, slots_of

__all__ = ["Columns", "KindsState", "halves", "operand_columns", "scale_codes", "sparse_columns"]

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
_WHOLE = {1: "uint8", 2: "uint16", 4: "uint32"}
_ELEMENTS = 4
_UNIT = 127  # scale of what has none
_REACH = {"e4m3fn": (-9, 9), "e4m3": (-9, 8), "e5m2": (-16, 16)}  # lowest bit, bits above the point
_DOUBLE_BITS = 53


@cache
def _values(name: str) -> F64:
    """What each byte is worth in a format of 8 bits."""
    with np.errstate(invalid="ignore"):
        return to_fp32(np.arange(256), name).view(np.float32).astype(np.float64)


def halves(x: NDArray[np.float32]) -> tuple[F64, F64]:
    """FP32 numbers as (high, low): 12 significant bits to nearest even, and the rest; 0 if high is not finite."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        part, exponent = np.frexp(wide)
        high = np.ldexp(np.rint(part * 4096), exponent - 12)
        high = np.where(np.isfinite(wide), high, wide)
        high = np.where(np.abs(high) >= 2.0**128, np.copysign(np.inf, wide), high)
        low = np.where(np.isfinite(high), wide - high, 0.0)
    return high, low


@dataclass(frozen=True)
class Columns:
    """An operand: `values` [K, N, 4] and `scales` [K, N] as numbers, and the codes of both, of one kind and format.

    `slots` [K, N] of a sparse stationary operand: which of the 16 numbers of the aligned four rows a weight meets.
    """

    kind: int
    fmt: str
    values: F64
    scales: F64
    codes: U8
    scale_codes: U8
    slots: U8 | None = None


def _single(raw: NDArray[np.unsignedinteger], kind: int, fmt: str) -> F64:
    """Numbers that a row takes one at a time."""
    with np.errstate(invalid="ignore"):
        if kind in (Kind.HIGH, Kind.LOW):
            return halves(raw.astype(np.uint32).view(np.float32))[kind == Kind.LOW]
        codes = from_fp32(raw, "tf32") if fmt == "tf32" else raw
        return to_fp32(codes, fmt).view(np.float32).astype(np.float64)


def operand_columns(
    sbuf: Memory, pattern: AccessPattern, kind: int, scales: AccessPattern | None = None, table: int = 0
) -> Columns:
    """The operand of an instruction. `table`: the map of E2M1 numbers, entry i at bit 8i."""
    size = bytes_of(kind, pattern.dtype)
    raw = sbuf.read(replace(pattern, dtype=FORMATS[_WHOLE[size]].code))
    fmt = by_code(pattern.dtype).name
    count, width = raw.shape
    codes = np.zeros((count, width, _ELEMENTS), np.uint8)
    of_scales = np.full((count, width), _UNIT, np.uint8)
    values = np.zeros((count, width, _ELEMENTS))
    ones = np.ones((count, width))
    if kind in (Kind.ONE, Kind.HIGH, Kind.LOW):
        values[..., 0] = _single(raw, kind, fmt)
        return Columns(kind, fmt, values, ones, codes, of_scales)
    if fmt == "e2m1":
        entries = np.array([table >> 8 * i & 0xFF for i in range(16)], np.uint8)
        codes[:] = entries[raw[..., None] >> (4 * np.arange(_ELEMENTS)).astype(raw.dtype) & 15]
        fmt = "e4m3fn"
    else:
        codes[..., :size] = raw[..., None].view(np.uint8).reshape(count, width, size)
    values[:] = _values(fmt)[codes]
    if scaled(kind):
        assert scales is not None
        of_scales = scale_codes(sbuf, pattern, scales, kind)
        ones = _values("e8m0" if kind == Kind.QUAD else "e4m3fn")[of_scales]
    return Columns(kind, fmt, values, ones, codes, of_scales)


def scale_codes(sbuf: Memory, pattern: AccessPattern, scales: AccessPattern, kind: int) -> U8:
    """Scale codes of each row of an operand, [K, N]."""
    block = min(32, sbuf.bytes.shape[0])
    shared = scale_rows_of(kind)
    slot = scales.partition_start % block
    every = sbuf.read(replace(scales, partition_start=0, partition_count=sbuf.bytes.shape[0]))
    rows = np.arange(pattern.partition_start, pattern.partition_start + pattern.partition_count)
    return every[rows // block * block + slot + rows % block // shared]


def sparse_columns(sbuf: Memory, pattern: AccessPattern, sparsity: int, tags: U8 | None = None) -> Columns:
    """A sparse operand: the stationary one if it has `tags` [K, N], else the moving one."""
    fmt = by_code(pattern.dtype).name
    numbers = moving_numbers(sbuf, pattern, sparsity) if tags is None else sbuf.read(pattern)[..., None]
    values = np.zeros((*numbers.shape[:2], _ELEMENTS))
    values[..., : numbers.shape[2]] = _single(numbers, Kind.SPARSE, fmt)
    shape = numbers.shape[:2]
    slots = None if tags is None else slots_of(tags, pattern.partition_start, sparsity)
    unit = np.full(shape, _UNIT, np.uint8)
    return Columns(Kind.SPARSE, fmt, values, np.ones(shape), np.zeros((*shape, _ELEMENTS), np.uint8), unit, slots)


class KindsState:
    """Shadow and working weights of `rows` x `cols` PEs with what a row takes in a beat; +0 at first.

    An instruction works on one of `tiles` equal parts of the rows, each a whole number of the `groups` row groups.
    """

    def __init__(self, rows: int, cols: int, groups: int = 1):
        self.rows, self.cols, self.groups = rows, cols, groups
        self._planes = {
            name: (
                np.zeros((rows, cols, _ELEMENTS)),
                np.ones((rows, cols)),
                np.zeros((rows, cols, _ELEMENTS), np.uint8),
                np.zeros((rows, cols), np.uint8),
                np.full((rows, cols), FORMATS["e4m3fn"].code, np.uint8),
                np.zeros((rows, cols), np.uint8),
            )
            for name in ("shadow", "working")
        }
        self._loaded = np.zeros(groups, np.bool_)  # since the swap of the group

    def _groups(self, partition_start: int, tiles: int) -> slice:
        """Row groups of the tile that has the partition."""
        each = self.groups // tiles
        first = partition_start // (self.rows // tiles) * each
        return slice(first, first + each)

    def load(self, columns: Columns, partition_start: int, tiles: int = 1) -> None:
        """LOAD_STATIONARY into rows from `partition_start`: the columns enter last one first."""
        count, width = columns.scales.shape
        rows = slice(partition_start, partition_start + count)
        fmt = np.uint8(FORMATS[columns.fmt].code)
        slots = np.uint8(0) if columns.slots is None else columns.slots
        parts = (columns.values, columns.scales, columns.codes, columns.scale_codes, fmt, slots)
        for plane, part in zip(self._planes["shadow"], parts, strict=True):
            plane[rows, width:] = plane[rows, : self.cols - width].copy()
            plane[rows, :width] = part
        self.loaded(partition_start, tiles)

    def clear(self, partition_start: int, tiles: int = 1) -> None:
        """TENSOR_TRANSPOSE: what passes through a tile's shadow weights leaves them +0."""
        mine = self._groups(partition_start, tiles)
        each = self.rows // self.groups
        blank = KindsState(self.rows, self.cols)
        for plane, zeros in zip(self._planes["shadow"], blank._planes["shadow"], strict=True):
            plane[mine.start * each : mine.stop * each] = zeros[mine.start * each : mine.stop * each]

    def loaded(self, partition_start: int, tiles: int = 1) -> None:
        """A load has reached the tile of the partition."""
        self._loaded[self._groups(partition_start, tiles)] = True

    def swap(self, partition_start: int, tiles: int = 1) -> None:
        """What a MULTIPLY_MOVING does first: groups of its tile that a load reached take their shadow weights."""
        mine = self._groups(partition_start, tiles)
        each = self.rows // self.groups
        for group in np.flatnonzero(self._loaded[mine]) + mine.start:
            rows = slice(group * each, (group + 1) * each)
            for working, shadow in zip(self._planes["working"], self._planes["shadow"], strict=True):
                working[rows] = shadow[rows]
        self._loaded[mine] = False

    def matmul(self, moving: Columns, partition_start: int, tiles: int = 1) -> U32:
        """MULTIPLY_MOVING on rows from `partition_start`, FP32 codes [cols, N]. Groups of its tile that a load reached
        since their last swap swap first."""
        self.swap(partition_start, tiles)
        acc = np.zeros((self.cols, moving.scales.shape[1]), np.float32)
        with np.errstate(all="ignore"):
            for i in range(moving.scales.shape[0]):
                acc = self._row(moving, i, partition_start + i, acc)
        return canonical(acc)

    def _row(self, moving: Columns, i: int, row: int, acc: NDArray[np.float32]) -> NDArray[np.float32]:
        """The chain's step of one row."""
        values, scales, _, _, formats, slots = (plane[row] for plane in self._planes["working"])
        if moving.kind == Kind.SPARSE:
            # A number of a row outside the operand has no meaning; only a row without weights can ask for one.
            beside = row - row % BUS_ROWS - (row - i)
            of_rows = np.clip(beside + slots.astype(np.int64) // 4, 0, len(moving.values) - 1)
            numbers = moving.values[of_rows, :, slots % 4]
            return (values[:, :1] * numbers + acc).astype(np.float32)
        if moving.kind in (Kind.ONE, Kind.HIGH, Kind.LOW):
            return (np.multiply.outer(values[:, 0], moving.values[i, :, 0]) + acc).astype(np.float32)
        exact = values @ moving.values[i].T + 0.0  # a zero is +0
        dot = (exact * np.multiply.outer(scales, moving.scales[i]) + 0.0).astype(np.float32)
        for code in np.unique(formats):
            here = formats == code
            if not _is_exact(by_code(int(code)).name, moving):
                dot[here] = self._integers(moving, i, row, here)
        return (dot.astype(np.float64) + acc).astype(np.float32)

    def _integers(self, moving: Columns, i: int, row: int, here: NDArray[np.bool_]) -> NDArray[np.float32]:
        """The dot products of columns `here`, all of one format, in integers."""
        _, _, codes, scale_codes, formats, _ = (plane[row][here] for plane in self._planes["working"])
        width, count = len(codes), moving.scales.shape[1]
        dot = mx.dot_product(
            np.repeat(codes, count, axis=0),
            np.tile(moving.codes[i], (width, 1)),
            np.repeat(scale_codes, count),
            np.tile(moving.scale_codes[i], width),
            by_code(int(formats[0])).name,
            moving.fmt,
            "e4m3fn" if moving.kind == Kind.QUAD_E4M3 else "e8m0",
        )
        return dot.view(np.float32).reshape(width, count)


def _is_exact(fmt: str, moving: Columns) -> bool:
    """Whether float64 holds every sum of four products of these formats, with significands of scales."""
    if fmt not in _REACH:
        return True  # a row of another kind, which nothing uses
    low, high = (_REACH[fmt][k] + _REACH[moving.fmt][k] for k in (0, 1))
    return high + 2 - low + (8 if moving.kind == Kind.QUAD_E4M3 else 0) <= _DOUBLE_BITS
