"""A reduction along the free axis: eight partial results, and the tree that joins them."""

from amaranth.hdl import Module, Mux, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.isa import AluOp
from rtl.numeric.alu import Alu

__all__ = ["PARTIALS", "PartialSums"]

PARTIALS = 8
_LEVELS = 3
IDENTITY = {
    AluOp.ADD: 0,
    AluOp.MAX: 0xFF800000,
    AluOp.MIN: 0x7F800000,
    AluOp.ABSMAX: 0,
    AluOp.ABSMIN: 0x7F800000,
}


class PartialSums(wiring.Component):
    """Element i of a group goes to partial result i mod 8, each from the identity; then
    ((0+1)+(2+3))+((4+5)+(6+7)). op: ADD, MAX, MIN, ABSMAX or ABSMIN, the same for a whole group.

    Timing: an element a cycle with `valid`, `first` and `last` of its group beside it; TREE cycles after the last
    one `out` holds the result until the next group begins. Meanwhile nothing may come.
    """

    TREE = PARTIALS  # cycles after the cycle with the last element, until `out` is right
    FAULTS = {
        1: "partial results go on from the group before",
        2: "an element goes to the partial result of its neighbour",
        3: "the tree leaves out the last pair",
    }

    def __init__(self, plant: ValueLike = 0):
        self.plant = plant
        super().__init__(
            {"x": In(32), "op": In(6), "valid": In(1), "first": In(1), "last": In(1), "out": Out(32)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.alu = alu = Alu()
        partials = [Signal(32, name=f"partial{i}", reset_less=True) for i in range(PARTIALS)]
        at = Signal(range(PARTIALS))
        place = Signal(range(PARTIALS))
        identity = Signal(32)
        op = Signal(6)
        begins = self.first & ~planted(self.plant, 1)
        with m.Switch(self.op):
            for one, value in IDENTITY.items():
                with m.Case(one):
                    m.d.comb += identity.eq(value)
        m.d.comb += place.eq(Mux(self.first, 0, at) ^ (planted(self.plant, 2) & at[0] & at[1]))
        # The tree: seven sums, one a cycle, in the registers of the left operands.
        joins = ((0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (4, 6), (0, 4))
        step = Signal(range(len(joins) + 1), init=len(joins))
        joining = step != len(joins)
        left = Signal(32)
        right = Signal(32)
        with m.Switch(place):
            for i, partial in enumerate(partials):
                with m.Case(i):
                    m.d.comb += left.eq(Mux(begins, identity, partial))
        m.d.comb += [right.eq(self.x), op.eq(self.op)]
        held = Signal(6)
        with m.If(joining):
            m.d.comb += op.eq(held)
            with m.Switch(step):
                for n, (a, b) in enumerate(joins):
                    with m.Case(n):
                        m.d.comb += [left.eq(partials[a]), right.eq(partials[b])]
        m.d.comb += [alu.x.eq(left), alu.y.eq(right), alu.op.eq(op)]

        with m.If(self.valid):
            m.d.sync += [at.eq(place + 1), held.eq(self.op)]
            with m.If(begins):
                m.d.sync += [partial.eq(identity) for partial in partials]
            with m.Switch(place):
                for i, partial in enumerate(partials):
                    with m.Case(i):
                        m.d.sync += partial.eq(alu.out)
            with m.If(self.last):
                m.d.sync += step.eq(0)
        with m.Elif(joining):
            m.d.sync += step.eq(step + 1)
            with m.Switch(step):
                for n, (a, _) in enumerate(joins):
                    with m.Case(n):
                        if n == 3:
                            with m.If(~planted(self.plant, 3)):
                                m.d.sync += partials[a].eq(alu.out)
                        else:
                            m.d.sync += partials[a].eq(alu.out)
        m.d.comb += self.out.eq(partials[0])
        return m
