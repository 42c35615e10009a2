"""What a reduction has so far: an element of each place of a register, and in the end of one."""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.gpsimd.vector.active import bits_of
from rtl.gpsimd.vector.layouts import LANE, Result
from rtl.gpsimd.vector.passes import Phase

__all__ = ["Reduction"]


class Reduction(wiring.Component):
    """`total` begins with element 0 of `first`, and else with what changes nothing; then it becomes `early`, which the
    lanes make of it and a register, where `computed` has a byte, or in FOLD of it and `folded`.

    valid: a pass of a reduction, in `phase`; step: of FOLD. size: of the elements.
    Timing: `total` in the next cycle, `folded` combinational.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits = 32 * lanes
        super().__init__(
            {
                "valid": In(1),
                "phase": In(Phase),
                "step": In(3),
                "lane": In(LANE),
                "size": In(2),
                "first": In(bits),
                "computed": In(4 * lanes),
                "early": In(bits),
                "total": Out(bits),
                "folded": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits, total = 32 * self.lanes, self.total
        with m.Switch(self.step):
            for n in range(exact_log2(4 * self.lanes)):
                with m.Case(n):
                    m.d.comb += self.folded.eq(total >> (bits >> n + 1))
        only, kept = Signal(bits), Signal(bits)
        m.d.comb += [
            only.eq(Mux(self.size == 2, (1 << 32) - 1, Mux(self.size == 1, (1 << 16) - 1, (1 << 8) - 1))),
            kept.eq(bits_of(m, self.computed, "kept")),
        ]
        with m.If(self.valid):
            with m.Switch(self.phase):
                with m.Case(Phase.FIRST):
                    neutral = self._neutral().replicate(self.lanes)
                    m.d.sync += total.eq((self.first & only) | (neutral & ~only))
                with m.Case(Phase.EACH):
                    m.d.sync += total.eq((self.early & kept) | (total & ~kept))
                with m.Case(Phase.FOLD):
                    m.d.sync += total.eq(self.early)
        return m

    def _neutral(self) -> Value:
        """32 bits of elements that change no result."""
        lane, size = self.lane, self.size
        sign = Mux(size == 2, Const(1 << 31, 32), Mux(size == 1, Const(0x80008000, 32), Const(0x80808080, 32)))
        ends = lane.inverts.replicate(32) ^ Mux(lane.signed, sign, 0)  # of a minimum the largest number
        return Mux(lane.result == Result.PICK, ends, (lane.result == Result.AND).replicate(32))
