"""Operands of an instruction word: patterns, elements as FP32 codes, columns, and places of results."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtl.contract import formats
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.isa import AluOp, Reduce
from rtl.contract.memmap import Space
from verif.golden.memory import Memory
from verif.golden.vector import Bits, accumulate, enter, leave

__all__ = ["Fields", "Operands", "Stored", "format_of", "pattern_of"]

Fields = Mapping[str, int]
"""Fields of an instruction word, decoded."""
U32 = NDArray[np.uint32]
_FP32 = formats.FORMATS["fp32"].code
_LOW24 = (1 << 24) - 1


def pattern_of(f: Fields, name: str) -> AccessPattern:
    """An operand of a decoded instruction, all four dimensions."""
    return AccessPattern(
        space=f[f"{name}_space"],
        dtype=f[f"{name}_dtype"],
        partition_start=f[f"{name}_partition_start"],
        partition_count=f[f"{name}_partition_count"],
        offset=f[f"{name}_offset"],
        dims=tuple((f[f"{name}_step{i}"], f[f"{name}_count{i}"]) for i in range(4)),
    )


def format_of(pattern: AccessPattern) -> str:
    """Name of the format of its elements."""
    return formats.by_code(pattern.dtype).name


@dataclass(frozen=True, slots=True)
class Stored:
    """What an instruction leaves: elements of dst (with a mask, where it holds), the accumulator, scales."""

    bits: Bits | None
    mask: NDArray[np.bool_] | None = None
    accumulator: U32 | None = None
    scales: NDArray[np.uint8] | None = None


class Operands:
    """Reads and writes of one engine on SBUF and PSUM, and its accumulator, one FP32 code a partition."""

    def __init__(self, sbuf: Memory, psum: Memory):
        self._memories = {int(Space.SBUF): sbuf, int(Space.PSUM): psum}
        self.accumulator: U32 = np.zeros(sbuf.bytes.shape[0], np.uint32)

    def bits(self, pattern: AccessPattern) -> Bits:
        """Elements of an operand as they lie in memory, [partitions, elements]."""
        return self._memories[pattern.space].read(pattern)

    def values(self, f: Fields, name: str, raw: bool = False) -> U32:
        """Elements of an operand as FP32 codes, or as raw 32 bits."""
        pattern = pattern_of(f, name)
        return enter(self.bits(pattern), format_of(pattern), raw)

    def scalar(self, f: Fields, slot: int, beside: str = "src0") -> U32:
        """`a` (slot 0) or `b` (slot 1): a constant [1, 1] or the column [partitions, 1] beside an operand."""
        immediate = f[f"imm{slot}"]
        if not f[f"column{slot}"]:
            return np.array([[immediate & 0xFFFFFFFF]], np.uint32)
        column = self._column(pattern_of(f, beside), immediate & _LOW24)
        return self._memories[int(Space.SBUF)].read(column).astype(np.uint32)

    def stored(self, f: Fields, values: U32, raw: bool = False, mask: NDArray[np.bool_] | None = None) -> Stored:
        """Results for dst, in its format."""
        return Stored(leave(values, format_of(pattern_of(f, "dst")), raw), mask)

    def reduced(self, f: Fields, op: AluOp, result: U32) -> U32 | None:
        """Take an instruction's own reduction [partitions] into the accumulator; what to store of it, if anything.

        Lanes are those of dst: operands that start elsewhere have been turned to them before.
        """
        target = pattern_of(f, "dst")
        lanes = slice(target.partition_start, target.partition_start + target.partition_count)
        b = self.scalar(f, 1) if f["reduce"] == Reduce.LOAD_REDUCE else None
        self.accumulator[lanes] = accumulate(Reduce(f["reduce"]), op, self.accumulator[lanes], result, b)
        return self.accumulator[lanes].copy() if f["store"] else None

    def write_bits(self, pattern: AccessPattern, bits: Bits | None) -> None:
        """Put raw elements [partitions, elements] into memory."""
        if bits is not None:
            self._memories[pattern.space].write(pattern, bits)

    def write(self, f: Fields, stored: Stored) -> None:
        """Put results into memory."""
        target = pattern_of(f, "dst")
        if stored.bits is not None:
            self._memories[target.space].write(target, stored.bits, stored.mask)
        if stored.accumulator is not None:
            place = self._column(target, f["imm2"] & _LOW24)
            self._memories[int(Space.SBUF)].write(place, stored.accumulator[:, None])

    def _column(self, beside: AccessPattern, offset: int) -> AccessPattern:
        return AccessPattern(
            space=Space.SBUF,
            dtype=_FP32,
            partition_start=beside.partition_start,
            partition_count=beside.partition_count,
            offset=offset,
            dims=((1, 1),),
        )
