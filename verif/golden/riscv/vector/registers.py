"""What an instruction works on: vector state and registers x, with ways to get an operand and to put a result."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from verif.golden.riscv.vector.instruction import VectorInstruction
from verif.golden.riscv.vector.state import VectorState

__all__ = ["Registers"]

SINK = 32  # where x0 is written
WORD = 0xFFFFFFFF

Operand = Callable[[], "NDArray[np.integer] | np.integer"]
Put = Callable[[int, "NDArray[np.generic] | np.integer"], None]


class Registers:
    """`x` is the hart's list, with 32 for writes to x0."""

    def __init__(self, state: VectorState, x: list[int]):
        self.state, self.x = state, x

    def set_x(self, register: int, value: int) -> None:
        """Write a register, 32 bits."""
        self.x[register or SINK] = value & WORD

    def second(self, i: VectorInstruction, bits: int, signed: bool, unsigned_immediate: bool = False) -> Operand:
        """What the field of vs1 stands for, `bits` wide: a vector of vl elements or a number of the same type."""
        state, x = self.state, self.x
        if i.form == "v":
            elements = state.elements(i.vs1, bits, signed)
            return lambda: elements[: state.vl]
        kind = np.dtype(f"{'i' if signed else 'u'}{bits // 8}").type
        sign, mask = (1 << bits - 1 if signed else 0), (1 << bits) - 1
        if i.form == "i":
            value = i.vs1 if unsigned_immediate else i.signed_immediate
            constant = kind(((value & mask) ^ sign) - sign)
            return lambda: constant
        return lambda: kind(((x[i.vs1] & mask) ^ sign) - sign)

    def put(self, i: VectorInstruction, dest: NDArray[np.integer]) -> Put:
        """Writes a result of vl elements to a group; where the mask is 0 nothing changes. Larger numbers wrap."""
        state = self.state

        def plain(count: int, result: "NDArray[np.generic] | np.integer") -> None:
            dest[:count] = result

        def masked(count: int, result: "NDArray[np.generic] | np.integer") -> None:
            np.copyto(dest[:count], result, where=state.mask(0, count), casting="unsafe")

        return masked if i.masked else plain

    def put_mask(self, i: VectorInstruction, register: int, bits: NDArray[np.bool_]) -> None:
        """Write a result of a bit an element; where the mask is 0 nothing changes."""
        state = self.state
        if i.masked:
            bits = np.where(state.mask(0, len(bits)), bits, state.mask(register, len(bits)))
        state.set_mask(register, bits)
