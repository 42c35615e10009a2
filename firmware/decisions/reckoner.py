"""Operations of a sequencer that put what is reckoned with registers into others."""

from collections.abc import Iterable

from firmware.decisions.numbers import Number, Register
from firmware.errors import KernelError
from firmware.loops.words import operation
from rtl.contract.sequence import REGISTERS, SeqOp

__all__ = ["REGISTERS_MAX", "ZERO", "Reckoner", "need_room"]

ZERO = REGISTERS - 1
"""A register that nobody writes."""

_REGISTERS_OF_PARTS = 14
REGISTERS_MAX = ZERO - _REGISTERS_OF_PARTS
"""Of a program; those behind hold what is reckoned with them."""


class Reckoner:
    """Operations that put a number into a register."""

    def __init__(self) -> None:
        self.operations: list[int] = []
        self._free = REGISTERS_MAX
        self._known: dict[int, int] = {}  # registers of numbers that have been reckoned, by id

    def register(self, number: Number | int) -> int:
        """The register that has it."""
        if isinstance(number, Register):
            return number.index
        if isinstance(number, int) and number == 0:
            return ZERO
        if id(number) in self._known:
            return self._known[id(number)]
        if isinstance(number, int):
            op, a, b, immediate = SeqOp.ADD, ZERO, None, number
        else:
            op, a = number.op, self.register(number.a)
            b = None if isinstance(number.b, int) else self.register(number.b)
            immediate = number.b if isinstance(number.b, int) else 0
        if self._free == ZERO:
            raise KernelError(f"what is reckoned with registers has more than {_REGISTERS_OF_PARTS} parts at once")
        self.operations.append(operation(op, self._free, a, b, immediate))
        self._known[id(number)] = self._free
        self._free += 1
        return self._free - 1


def need_room(numbers: Iterable[Number]) -> None:
    """Errors: KernelError if these cannot be reckoned at once."""
    reckoner = Reckoner()
    for number in numbers:
        reckoner.register(number)
