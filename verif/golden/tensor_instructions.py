"""Instructions of the tensor queue: what each reads, and what it then stores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.isa import Cause, Opcode, Queue
from rtl.contract.kinds import Kind
from verif.golden import numeric
from verif.golden.array_kinds import KindsState, operand_columns, sparse_columns
from verif.golden.groups import scaled
from verif.golden.memory import Memory
from verif.golden.operands import Fields, pattern_of
from verif.golden.rounding import row_words, to_bf16
from verif.golden.sparsity import tags_of, tags_stand

__all__ = ["TensorInstructions", "turned"]


def turned(sbuf: Memory, source: AccessPattern) -> NDArray[np.uint32]:
    """A TENSOR_TRANSPOSE of [K, M]: 32-bit words [M, K], last row of the source first; 16 bits are the upper half."""
    bits = sbuf.read(source)
    words = bits.astype(np.uint32) << np.uint32(32 - 8 * bits.itemsize)
    return np.ascontiguousarray(words[::-1].T)


class TensorInstructions:
    """The tensor engine without time: weights, column sums, accumulation in PSUM."""

    def __init__(self, sbuf: Memory, psum: Memory, rows: int, cols: int, groups: int = 1):
        self.array = KindsState(rows, cols, groups)
        self._sbuf, self._psum = sbuf, psum

    def read(self, f: Fields) -> Any:
        """Load weights, or the sums of the moving columns, or a transpose; of a load that fails, the cause."""
        source = pattern_of(f, "src0")
        if f["kind"] == Kind.SPARSE:
            return self._read_sparse(f)
        if f["opcode"] == Opcode.TENSOR_TRANSPOSE:
            self.array.clear(source.partition_start, 1 << f["tile"])
            return turned(self._sbuf, source)
        scales = pattern_of(f, "src1") if scaled(f["kind"]) else None
        columns = operand_columns(self._sbuf, source, f["kind"], scales, f["imm0"] | f["imm1"] << 64)
        if f["opcode"] == Opcode.LOAD_STATIONARY:
            return self.array.load(columns, source.partition_start, 1 << f["tile"])
        return self.array.matmul(columns, source.partition_start, 1 << f["tile"])[: f["dst_partition_count"]]

    def _read_sparse(self, f: Fields) -> Any:
        """The same for operands of kind SPARSE."""
        source, sparsity, tiles = pattern_of(f, "src0"), f["sparsity"], 1 << f["tile"]
        if f["opcode"] == Opcode.MULTIPLY_MOVING:
            columns = sparse_columns(self._sbuf, source, sparsity)
            return self.array.matmul(columns, source.partition_start, tiles)[: f["dst_partition_count"]]
        tags = tags_of(self._sbuf, pattern_of(f, "src1"), source.elements)
        if not tags_stand(tags, sparsity):
            return Cause.TAGS
        return self.array.load(sparse_columns(self._sbuf, source, sparsity, tags), source.partition_start, tiles)

    def skip(self, f: Fields) -> None:
        """What an instruction does to the array whose numbers nobody asks for: loads are noted, weights swapped."""
        start, tiles = f["src0_partition_start"], 1 << f["tile"]
        if f["opcode"] == Opcode.LOAD_STATIONARY:
            self.array.loaded(start, tiles)
        elif f["opcode"] == Opcode.TENSOR_TRANSPOSE:
            self.array.clear(start, tiles)
        elif f["opcode"] == Opcode.MULTIPLY_MOVING:
            self.array.swap(start, tiles)

    def write(self, f: Fields, stored: Any) -> None:
        """Put sums or a transpose into PSUM, or add them; "sequence" is the place of the instruction in its queue."""
        if f["opcode"] == Opcode.LOAD_STATIONARY:
            return
        target = pattern_of(f, "dst")
        sums = numeric.fp32_add(self._psum.read(target), stored) if f["accumulate"] else stored
        words = row_words(f["imm2"], Queue.TENSOR, f["sequence"], sums.shape[1])
        self._psum.write(target, to_bf16(sums, f["rounding"], words))
