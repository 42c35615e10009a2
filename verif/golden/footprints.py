"""What an item of a program reads and writes, without running it: bytes of the memories, and the state of engines.

Reads may be more than an item reads, never less; what it writes for sure is never more than it writes. So a program of
which only what leads to some result is run leaves the same bits there (verif.golden.sampling). The array's weights are
not among them: verif.golden.weight_ways follows those.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.descriptor import Indirect
from rtl.contract.formats import FORMATS
from rtl.contract.isa import MX_ROWS, SHUFFLE_KEEP, Opcode, Queue, Reduce, block, mx_scale_partition
from rtl.contract.kinds import Kind
from rtl.contract.memmap import ADDRESS, PARTITION_STRIDE_BYTES, Space
from verif.golden import dma
from verif.golden.groups import bytes_of, moving_bytes_of, scaled
from verif.golden.issue_operands import OPERANDS
from verif.golden.memory import element_dtype, offsets
from verif.golden.operands import pattern_of
from verif.golden.vector_instructions import shuffle_mask

__all__ = ["SUMS", "TABLE", "Access", "Footprint", "descriptor_footprint", "instruction_footprint"]

_MEMORY = {int(Space.SBUF): "sbuf", int(Space.PSUM): "psum"}
SUMS = {Queue.VECTOR: "vector sums", Queue.SCALAR: "scalar sums"}
"""Accumulators of the engines, a column of one byte a partition."""
TABLE = "table"
_REDUCING = (Opcode.EXP, Opcode.RANGE_SELECT, Opcode.ACTIVATION)
_COLUMN_BYTES = 4
_LOW24 = (1 << 24) - 1

Bytes = slice | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes `at` of rows `rows` of a memory; HBM has one row."""

    memory: str
    rows: slice
    at: Bytes


@dataclass(frozen=True, slots=True)
class Footprint:
    """What an item reads and writes; `surely`: that it writes every byte of `writes`."""

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    surely: bool = True


@lru_cache(maxsize=4096)
def _from_zero(dims: tuple[tuple[int, int], ...], size: int) -> Bytes:
    """Bytes that elements of `size` bytes take from the first one on, a slice if they have no gaps."""
    shape = AccessPattern(
        space=0, dtype=FORMATS["uint8"].code, partition_start=0, partition_count=1, offset=0, dims=dims
    )
    every = (offsets(shape) * size)[:, None] + np.arange(size)
    found = np.unique(every)
    first, last = int(found[0]), int(found[-1])
    return slice(first, last + 1) if last - first + 1 == found.size else found


def _part(pattern: AccessPattern, size: int | None = None) -> Access:
    """What an operand whose elements take `size` bytes covers."""
    found = _from_zero(pattern.dims, size or element_dtype(pattern).itemsize)
    at = pattern.offset
    moved = slice(found.start + at, found.stop + at) if isinstance(found, slice) else found + at
    first = pattern.partition_start
    return Access(_MEMORY[pattern.space], slice(first, first + pattern.partition_count), moved)


def _column(beside: AccessPattern, immediate: int) -> Access:
    at, first = immediate & _LOW24, beside.partition_start
    return Access("sbuf", slice(first, first + beside.partition_count), slice(at, at + _COLUMN_BYTES))


def _tensor_sources(f: Mapping[str, int], partitions: int) -> Iterator[Access]:
    source = pattern_of(f, "src0")
    moving = f["opcode"] == Opcode.MULTIPLY_MOVING
    if f["opcode"] == Opcode.TENSOR_TRANSPOSE:
        yield _part(source)
    elif f["kind"] == Kind.SPARSE:
        yield _part(source, moving_bytes_of(f["sparsity"]) if moving else None)
        if not moving:
            yield _part(pattern_of(f, "src1"))
    else:
        yield _part(source, bytes_of(f["kind"], source.dtype))
        if scaled(f["kind"]):
            yield _part(replace(pattern_of(f, "src1"), partition_start=0, partition_count=partitions))


def _sources(f: Mapping[str, int], queue: Queue, partitions: int) -> Iterator[Access]:
    opcode = Opcode(f["opcode"])
    if queue == Queue.TENSOR:
        yield from _tensor_sources(f, partitions)
        if f["accumulate"] and opcode != Opcode.LOAD_STATIONARY:
            yield _part(pattern_of(f, "dst"))
        return
    for name in OPERANDS.get(opcode, ()):
        if name != "dst":
            yield _part(pattern_of(f, name))
    beside = pattern_of(f, "dst" if opcode == Opcode.MEMSET else "src0")
    for slot in range(2):
        if f[f"column{slot}"]:
            yield _column(beside, f[f"imm{slot}"])
    if opcode in _REDUCING and f["reduce"] == Reduce.REDUCE:
        yield _lanes(f, queue)
    if opcode == Opcode.ACTIVATION and f["imm2"] >> 32 & 0xFF >= FIRST_TABLE_FUNCTION:
        yield Access(TABLE, slice(0, 1), slice(0, 1))


def _lanes(f: Mapping[str, int], queue: Queue) -> Access:
    first = f["dst_partition_start"]
    return Access(SUMS[queue], slice(first, first + f["dst_partition_count"]), slice(0, 1))


def _results(f: Mapping[str, int], queue: Queue, partitions: int) -> Iterator[Access]:
    opcode = Opcode(f["opcode"])
    if opcode == Opcode.LOAD_TABLE:
        yield Access(TABLE, slice(0, 1), slice(0, 1))
        return
    target = pattern_of(f, "dst")
    if opcode == Opcode.QUANTIZE_MX:
        yield _part(target, 2 if target.dtype == FORMATS["e2m1"].code else 4)
        at, count = f["imm0"] & _LOW24, target.elements
        for b in range(target.partition_count // MX_ROWS):
            row = mx_scale_partition(target.partition_start + MX_ROWS * b, f["imm0"] >> 24 & 3, partitions)
            yield Access("sbuf", slice(row, row + 1), slice(at, at + count))
        return
    yield _part(target)
    if opcode in _REDUCING and f["reduce"] != Reduce.IDLE:
        yield _lanes(f, queue)
        if f["store"]:
            yield _column(target, f["imm2"])


def instruction_footprint(f: Mapping[str, int], queue: Queue, partitions: int) -> Footprint:
    """Of a decoded instruction that issue has accepted. `partitions`: of SBUF."""
    opcode = Opcode(f["opcode"])
    if opcode in (Opcode.NOP, Opcode.DMA_TRIGGER, Opcode.DMA_COPY):
        return Footprint((), ())
    reads = tuple(_sources(f, queue, partitions))
    if opcode == Opcode.LOAD_STATIONARY:
        return Footprint(reads, ())
    kept = opcode == Opcode.SHUFFLE and SHUFFLE_KEEP in shuffle_mask(f, block(partitions))
    surely = not kept and opcode not in (Opcode.COPY_PREDICATED, Opcode.LOAD_TABLE)
    return Footprint(reads, tuple(_results(f, queue, partitions)), surely)


def _table(d: Mapping[str, int], side: str) -> tuple[Access, ...]:
    """All that lies between the first and the last byte of its rows, in SBUF of their partitions."""
    steps = [(d["table_rows"], d[f"{side}_step0"]), (d["count1"], d[f"{side}_step1"])]
    at, n = ADDRESS.unpack(d[side])["offset"], d["row_bytes"]
    stride = 1 << 62 if ADDRESS.unpack(d[side])["space"] == Space.HBM else PARTITION_STRIDE_BYTES
    low, high = list(divmod(at, stride)), list(divmod(at, stride))
    for count, step in steps:
        for k, part in enumerate(divmod(abs(step), stride)):
            low[k] -= (count - 1) * part if step < 0 else 0
            high[k] += (count - 1) * part if step > 0 else 0
    memory = "hbm" if stride != PARTITION_STRIDE_BYTES else "sbuf"
    return (Access(memory, slice(low[0], high[0] + 1), slice(low[1], high[1] + n)),)


def _rows(d: Mapping[str, int], side: str) -> tuple[Access, ...]:
    if d["indirect"] == Indirect[side.upper()]:
        return _table(d, side)
    n = d["row_bytes"]
    found: list[Access] = []
    in_hbm = ADDRESS.unpack(d[side])["space"] == Space.HBM
    for at in dma.row_addresses(d, side):
        row, byte = (0, at) if in_hbm else divmod(at, PARTITION_STRIDE_BYTES)
        found.append(Access("hbm" if in_hbm else "sbuf", slice(row, row + 1), slice(byte, byte + n)))
    return tuple(found)


def descriptor_footprint(d: Mapping[str, int]) -> Footprint:
    """Of a copy inside the core: `reads` and `writes` have its rows in their order; a sum reads where it writes too.
    Indices may choose any row of a table, or leave some out."""
    written = _rows(d, "destination")
    read = _rows(d, "source") + (written if d["add"] else ())
    indices = tuple(_index(at) for at in dma.index_places(d).tolist())
    surely = d["indirect"] == Indirect.NONE or (d["indirect"] == Indirect.SOURCE and not d["index_skips"])
    return Footprint(read + indices, written, surely)


def _index(at: int) -> Access:
    row, byte = divmod(at, PARTITION_STRIDE_BYTES)
    return Access("sbuf", slice(row, row + 1), slice(byte, byte + _COLUMN_BYTES))
