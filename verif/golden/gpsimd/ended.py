"""The end of a core's run, from where it is found to where it is noted."""

from rtl.contract.isa import Cause

__all__ = ["Ended"]


class Ended(Exception):
    """A core has ended. `cause`: NONE, GP_EXIT, GP_TRAP or GP_DMA; `low` and `number` as gpsimd.FAULT has them."""

    def __init__(self, cause: Cause, low: int = 0, number: int = 0):
        super().__init__(f"{cause.name}, {low:#010x}, {number}")
        self.cause = cause
        self.low = low
        self.number = number

    @classmethod
    def by_exit(cls, value: int) -> "Ended":
        """The program has given an exit value of 32 bits."""
        return cls(Cause.GP_EXIT, value) if value else cls(Cause.NONE)

    @classmethod
    def by_copy(cls, why: Cause, pc: int = 0) -> "Ended":
        """A descriptor that the store at `pc` has pushed is refused."""
        return cls(Cause.GP_DMA, pc, int(why))

    @classmethod
    def by_trap(cls, pc: int, mcause: int) -> "Ended":
        """A trap at `pc` that nobody handles. Whether it was an interrupt is not told."""
        return cls(Cause.GP_TRAP, pc, mcause & 31)
