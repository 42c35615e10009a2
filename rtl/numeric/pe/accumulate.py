"""The way of an addend into the partial sum of a processing element: a register, the addition, a register."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.numeric.fp32.align import ADDEND, AlignAdd
from rtl.numeric.fp32.round import NormaliseRound

__all__ = ["Accumulate"]


class Accumulate(wiring.Component):
    """out = RN32(addend + acc) with one rounding; with `enable` = 0, out = acc unchanged.

    Timing: one result a cycle; inputs of cycle t give `out` in cycle t + LATENCY. First cycle: what makes
    the addend; second: align, add, normalise, round. Data registers are not reset.
    """

    LATENCY = 2

    addend: In(ADDEND)
    acc: In(32)
    enable: In(1)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.align = align = AlignAdd()
        m.submodules.round = last = NormaliseRound()
        multiplied = Signal(ADDEND, reset_less=True)
        waiting = Signal(32, reset_less=True)
        used = Signal(reset_less=True)
        result = Signal(32, reset_less=True)
        m.d.sync += [
            multiplied.eq(self.addend),
            waiting.eq(self.acc),
            used.eq(self.enable | fault("an unused element adds its product")),
        ]
        m.d.comb += [
            align.addend.eq(multiplied),
            align.acc.eq(waiting),
            last.sum.eq(align.sum),
        ]
        m.d.sync += result.eq(Mux(used, last.out, waiting))
        m.d.comb += self.out.eq(result)
        return m
