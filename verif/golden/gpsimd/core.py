"""A core during a run: its hart, asleep or awake."""

from rtl.contract.gpsimd import WaitFor
from rtl.contract.isa import Cause
from verif.golden.gpsimd.ended import Ended
from verif.golden.gpsimd.mailbox import EXTERNAL, TENSOR_CYCLES, TIMER, MailboxRegisters
from verif.golden.riscv.csrs import ADDRESSES
from verif.golden.riscv.hart import Hart

__all__ = ["Core"]

_BASE = ~3  # of mtvec


class Core:
    """A hart with its mailbox, from reset until Ended is raised out of `run`.

    A trap ends it if mtvec is 0, and if the first instruction of its handler traps: then the first of the two is told.
    """

    def __init__(self, hart: Hart, mailbox: MailboxRegisters):
        self.hart, self.mailbox = hart, mailbox
        self.asleep = False
        self._trapped = (-1, 0, 0)  # the last trap: instructions retired until then, pc, mcause
        hart.on_trap = self._trap
        hart.read_csr_value = self._csr

    @property
    def steps(self) -> int:
        """Instructions so far, those that trapped too."""
        return self.hart.csrs.retired + self.hart.csrs.trapped

    @property
    def ready(self) -> bool:
        """Whether it executes instructions: it is awake, or an enabled interrupt is pending."""
        return not self.asleep or bool(self.mailbox.pending() & self.hart.csrs.mie)

    def run(self, instructions: int) -> None:
        """So many of them, less if it falls asleep. Errors: Ended."""
        end = self.steps + instructions
        self.asleep = False
        while self.ready and self.steps < end:
            try:
                self.hart.run(end - self.steps, self.mailbox.pending())
            except Ended as ended:
                if ended.cause == Cause.GP_DMA:
                    raise Ended.by_copy(Cause(ended.number), self.hart.pc) from None
                raise
            self.asleep = self.hart.waits

    def sleep_left(self) -> int | None:
        """GPSIMD cycles until time wakes it; None if it does not wait for that."""
        enabled, mailbox = self.hart.csrs.mie, self.mailbox
        if enabled & TIMER or (enabled & EXTERNAL and mailbox.compare == WaitFor.TIMER):
            return max(0, -(-(mailbox.timer - mailbox.time) // TENSOR_CYCLES))
        return None

    def _csr(self, address: int) -> int | None:
        """mip is what is pending now, not when a slice began; time is MTIME."""
        if address == ADDRESSES["mip"]:
            return self.mailbox.pending()
        if address in (ADDRESSES["time"], ADDRESSES["timeh"]):
            return self.mailbox.time >> (32 if address == ADDRESSES["timeh"] else 0) & 0xFFFFFFFF
        return None

    def _trap(self) -> None:
        csrs = self.hart.csrs
        before, pc, mcause = self._trapped
        if before == csrs.retired:
            raise Ended.by_trap(pc, mcause)
        if not csrs.mtvec & _BASE:
            raise Ended.by_trap(csrs.mepc, csrs.mcause)
        self._trapped = csrs.retired, csrs.mepc, csrs.mcause
