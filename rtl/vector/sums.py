"""What a lane does with all its elements: sums along the free axis, the accumulator, the choice of a result."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.isa import Reduce
from rtl.numeric.fp32.partial_sums import PartialSums
from rtl.numeric.fp32.view import Fp32

__all__ = ["RESULT_FROM", "SUMMING", "Sums"]

SLOTS = PartialSums.SLOTS
RESULT_FROM = {"operators": 0, "sums": 1, "accumulator": 2}
"""What `result` chooses."""

SUMMING = data.StructLayout(
    {
        "op": 6,
        "results": 1,  # sums take what the operators give instead of elements
        "valid": SLOTS,
        "first": 1,
        "last": 1,
        "position": 3,
        "negate": 1,  # of the sums' result
        "keep": 1,  # the accumulator takes the folded value, or the sums' result alone
        "reduce": 2,  # isa.Reduce
    }
)
"""What all lanes do in this cycle."""


class Sums(wiring.Component):
    """`values[j]` are converted elements, `results[j]` what the operators gave; `summing` says what is summed.

    `mine`: the lane's partition belongs to the instruction; the accumulators of others stay. `fold_x` is what joins
    `fold_y`, the sums' result, in the first operator, which gives it back as `folded` a cycle later.
    Timing: as PartialSums.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "values": In(32).array(SLOTS),
                "results": In(32).array(SLOTS),
                "b": In(32),
                "summing": In(SUMMING),
                "result": In(2),
                "mine": In(1),
                "folded": In(32),
                "fold_x": Out(32),
                "fold_y": Out(32),
                "out": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        s = self.summing
        m.submodules.sums = sums = PartialSums(SLOTS)
        accumulator = Signal(32, reset_less=True)
        m.d.comb += [
            *(sums.x[j].eq(Mux(s.results, self.results[j], self.values[j])) for j in range(SLOTS)),
            sums.op.eq(s.op),
            sums.valid.eq(s.valid),
            sums.first.eq(s.first),
            sums.last.eq(s.last),
            sums.position.eq(s.position),
            self.fold_x.eq(Mux(s.reduce == Reduce.LOAD_REDUCE, self.b, accumulator)),
            self.fold_y.eq(sums.out),
        ]
        with m.If(s.keep & self.mine):
            alone = (s.reduce == Reduce.RESET_REDUCE) | fault("the accumulator forgets what it held")
            m.d.sync += accumulator.eq(Mux(alone, sums.out, self.folded))
        nan = Fp32(sums.out).is_nan | ~s.negate
        with m.Switch(self.result):
            with m.Case(RESULT_FROM["sums"]):
                m.d.comb += self.out.eq(sums.out ^ Mux(nan, 0, 1 << 31))
            with m.Case(RESULT_FROM["accumulator"]):
                m.d.comb += self.out.eq(accumulator)
            with m.Default():
                m.d.comb += self.out.eq(self.results[0])
        return m
