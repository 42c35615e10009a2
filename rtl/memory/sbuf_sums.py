"""Sums of 16 bytes of SBUF with 16 that a mover brings."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import Rounding
from rtl.numeric.fp32.add_lanes import Fp32AddLanes

__all__ = ["SbufSums"]

_WORDS = 4


class SbufSums(wiring.Component):
    """out = old + new in each element, as `add` (DmaAdd) says: RN32 with gradual underflow and the canonical NaN;
    of BF16 the FP32 sum rounded to the nearest even, which rounds the exact sum (24 >= 2 * 8 + 2 bits); of INT32
    modulo 2^32. `form`: see Fp32AddLanes.

    Lane i below 4 adds word i, or its upper BF16; lane 4 + i the lower one.
    Timing: operands of cycle t, with `valid`, give `out` in cycle t + LATENCY.
    """

    LATENCY = Fp32AddLanes.LATENCY

    def __init__(self, form: str = "structural"):
        self.form = form
        super().__init__({"valid": In(1), "add": In(2), "old": In(128), "new": In(128), "out": Out(128)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.lanes = lanes = Fp32AddLanes(2 * _WORDS, self.form)
        halves = Signal()
        m.d.comb += [
            halves.eq(self.add == DmaAdd.BF16),
            lanes.valid.eq(self.valid),
            lanes.a.eq(self._operands(self.old, halves)),
            lanes.b.eq(self._operands(self.new, halves)),
            lanes.rounding.eq(Mux(halves, Rounding.NEAREST, Rounding.FP32)),
        ]

        # integers, and what is added, keep step with the lanes
        whole: Value = Cat((self.old.word_select(n, 32) + self.new.word_select(n, 32))[:32] for n in range(_WORDS))
        lost = fault("the sum of two INT32 beside SBUF loses its carry into the upper half")
        with_loss = Cat(
            Cat(
                (self.old.word_select(2 * n, 16) + self.new.word_select(2 * n, 16))[:16],
                (self.old.word_select(2 * n + 1, 16) + self.new.word_select(2 * n + 1, 16))[:16],
            )
            for n in range(_WORDS)
        )
        integers: Value = Mux(lost, with_loss, whole)
        add: Value = self.add
        for stage in range(self.LATENCY):
            next_integers = Signal(128, name=f"integers{stage}", reset_less=True)
            next_add = Signal(2, name=f"add{stage}", reset_less=True)
            m.d.sync += [next_integers.eq(integers), next_add.eq(add)]
            integers, add = next_integers, next_add

        out = [lanes.out.word_select(n, 32) for n in range(2 * _WORDS)]
        with m.Switch(add):
            with m.Case(DmaAdd.INT32):
                m.d.comb += self.out.eq(integers)
            with m.Case(DmaAdd.BF16):
                m.d.comb += self.out.eq(Cat(Cat(out[_WORDS + n][16:], out[n][16:]) for n in range(_WORDS)))
            with m.Default():
                m.d.comb += self.out.eq(Cat(out[:_WORDS]))
        return m

    @staticmethod
    def _operands(row: Signal, halves: Value) -> Value:
        """FP32 words of the lanes."""
        words = [row.word_select(n, 32) for n in range(_WORDS)]
        upper = [Cat(Mux(halves, 0, word[:16])[:16], word[16:]) for word in words]
        lower = [Cat(Const(0, 16), Mux(halves, word[:16], 0)[:16]) for word in words]
        return Cat(*upper, *lower)
