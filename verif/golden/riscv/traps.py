"""Traps of a hart: causes as mcause holds them, and what carries one from where it is found to where it is taken."""

from enum import IntEnum

__all__ = ["INTERRUPT", "Cause", "Trap"]

INTERRUPT = 1 << 31
"""Bit of mcause: the cause is an interrupt."""


class Cause(IntEnum):
    """Exceptions that a machine-mode hart with 16-bit alignment of instructions can raise (0 is impossible)."""

    FETCH_ACCESS = 1
    ILLEGAL = 2
    BREAKPOINT = 3
    LOAD_MISALIGNED = 4
    LOAD_ACCESS = 5
    STORE_MISALIGNED = 6
    STORE_ACCESS = 7
    ECALL = 11


class Trap(Exception):
    """An instruction cannot retire: `cause` for mcause, `value` for mtval."""

    def __init__(self, cause: int, value: int):
        super().__init__(f"cause {cause}, value {value:#010x}")
        self.cause = cause
        self.value = value
