"""What the class that goes first may have while others wait."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.timing import DMA_STRICT_WINDOW
from rtl.dma.layouts import UNITS_BITS, units_max

__all__ = ["StrictCap"]

_BURST = 16  # caps that it may be ahead


class StrictCap(wiring.Component):
    """`open`: its next piece may leave. Of 64 units that leave while others wait it has dma.strict_cap; what it leaves
    unused is kept for a burst of up to 16 times the cap.

    `waits`: another class has a piece. `goes`, of `units`: a piece of this class leaves; `passes`, of `other_units`:
    one of another.
    Timing: `open` is combinational from `waits`; what leaves in a cycle counts from the next one on.
    """

    def __init__(self, cfg: Config):
        self.cap = cfg.dma.strict_cap
        self.rest = DMA_STRICT_WINDOW - self.cap
        self.limit = _BURST * self.cap * self.rest
        self.most = units_max(cfg) * self.rest  # parts of one piece
        self.over = Signal(range(self.limit + self.most + 1))  # beyond the cap, in parts of a unit; seen by proofs too
        super().__init__(
            {
                "waits": In(1),
                "goes": In(1),
                "units": In(UNITS_BITS),
                "passes": In(1),
                "other_units": In(UNITS_BITS),
                "open": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        over = self.over
        had, paid = Signal(range(self.limit + 2 * self.most + 1)), Signal(UNITS_BITS + 7)
        m.d.comb += [
            self.open.eq(~self.waits | (over <= self.limit) | fault("the strict class of a mover has no cap")),
            had.eq(over + Mux(self.goes & self.waits, self.units * self.rest, 0)),
            paid.eq(Mux(self.passes, self.other_units * self.cap, 0)),
        ]
        m.d.sync += over.eq(Mux(had > paid, had - paid, 0))
        return m
