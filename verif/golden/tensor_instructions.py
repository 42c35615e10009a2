"""Instructions of the tensor queue: what each reads, and what it then stores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtl.contract.isa import AccessPattern, Opcode
from verif.golden import numeric
from verif.golden.memory import Memory
from verif.golden.operands import Fields, format_of, pattern_of
from verif.golden.tensor import TensorState

__all__ = ["TensorInstructions"]


class TensorInstructions:
    """The tensor engine without time: weights, column sums, accumulation in PSUM."""

    def __init__(self, sbuf: Memory, psum: Memory, rows: int, cols: int):
        self.array = TensorState(rows, cols)
        self._sbuf, self._psum = sbuf, psum

    def read(self, f: Fields) -> Any:
        """Load weights, or the sums of the moving columns."""
        source = pattern_of(f, "src0")
        if f["opcode"] == Opcode.LOAD_STATIONARY:
            return self.array.load(self._operand(source), source.partition_start)
        sums = self.array.matmul(self._operand(source), source.partition_start)
        return sums[: f["dst_partition_count"]]

    def write(self, f: Fields, stored: Any) -> None:
        """Put sums into PSUM, or add them."""
        if f["opcode"] == Opcode.LOAD_STATIONARY:
            return
        target = pattern_of(f, "dst")
        self._psum.write(target, numeric.fp32_add(self._psum.read(target), stored) if f["accumulate"] else stored)

    def _operand(self, pattern: AccessPattern) -> NDArray[np.float32]:
        return numeric.decode(self._sbuf.read(pattern), format_of(pattern))
