"""A reduction along the free axis: eight partial results, and the tree that joins them."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.isa import AluOp
from rtl.numeric.fp32.add_comb import Fp32AddComb
from rtl.numeric.fp32.compare import Fp32Compare

__all__ = ["PARTIALS", "PartialSums"]

PARTIALS = 8
_IDENTITY = {AluOp.MAX: 0xFF800000, AluOp.MIN: 0x7F800000, AluOp.ABSMIN: 0x7F800000}


def _schedule(slots: int) -> list[list[tuple[int, int]]]:
    """The joins (left, right) of every cycle of the tree: a level after the other, `slots` at once."""
    rounds = []
    step = 1
    while step < PARTIALS:
        joins = [(i, i + step) for i in range(0, PARTIALS, 2 * step)]
        rounds += [joins[n : n + slots] for n in range(0, len(joins), slots)]
        step *= 2
    return rounds


class PartialSums(wiring.Component):
    """Element i of a group goes to partial result i mod 8, each in order from the identity; then
    ((0+1)+(2+3))+((4+5)+(6+7)). `op`: ADD, MAX, MIN, ABSMAX or ABSMIN, the same through a group and its tree.

    A beat has 1, 2 or 4 elements in its lowest slots, perhaps fewer at the end of a group: bit j of `valid` says that
    x[j] is one. It is element `position` + j of its group, mod 8; `position` is a multiple of the beat's width.
    `first` marks the first beat of a group, `last` the last one; a group may be one beat.
    Timing: a beat a cycle. The tree takes the TREE[slots] cycles after that of the `last` beat, in which `busy` is 1
    and no beat may come; in the cycle after them `done` is 1 and `out` is the result, which stays until the next
    beat. The next group may begin in that cycle. The same adders do both. Partial results are not reset.
    """

    SLOTS = 4
    TREE = {slots: len(_schedule(slots)) for slots in (1, 2, 4)}

    def __init__(self, slots: int = SLOTS):
        if slots not in self.TREE:
            raise ValueError(f"slots must be 1, 2 or 4, not {slots}")
        self.slots = slots
        super().__init__(
            {
                "x": In(data.ArrayLayout(32, slots)),
                "valid": In(slots),
                "position": In(3),
                "first": In(1),
                "last": In(1),
                "op": In(6),
                "busy": Out(1),
                "done": Out(1),
                "out": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rounds = _schedule(self.slots)
        partials = [Signal(32, name=f"partial{i}", reset_less=True) for i in range(PARTIALS)]
        turn = Signal(range(len(rounds) + 1))  # the tree's cycle + 1
        identity = Signal(32)
        with m.Switch(self.op):
            for op, value in _IDENTITY.items():
                with m.Case(op):
                    m.d.comb += identity.eq(
                        Mux(fault("the smallest is sought from zero") & (op == AluOp.MIN), 0, value)
                    )

        # Where the partials of a group start: from the identity in its first beat.
        begins = self.first & ~fault("partial results go on from the group before")
        arriving = self.valid.any()
        place = Signal(3)
        m.d.comb += [
            self.busy.eq(turn != 0),
            place.eq(self.position ^ fault("every element goes to the partial result of its neighbour")),
        ]
        with m.If(begins & arriving):
            m.d.sync += [partial.eq(identity) for partial in partials]

        for slot in range(self.slots):
            left = Signal(32, name=f"left{slot}")
            right = Signal(32, name=f"right{slot}")
            m.d.comb += right.eq(self.x[slot])
            targets = self._targets(slot)
            with m.Switch(place):
                for start, target in targets.items():
                    with m.Case(start):
                        m.d.comb += left.eq(Mux(begins, identity, partials[target]))
            with m.Switch(turn):
                for n, joins in enumerate(rounds, 1):
                    if slot < len(joins):
                        with m.Case(n):
                            m.d.comb += [left.eq(partials[joins[slot][0]]), right.eq(partials[joins[slot][1]])]
            result = self._join(m, slot, left, right)
            with m.If(self.valid[slot] | (fault("what is not valid counts in partial sums") & arriving)):
                with m.Switch(place):
                    for start, target in targets.items():
                        with m.Case(start):
                            m.d.sync += partials[target].eq(result)
            with m.Switch(turn):
                for n, joins in enumerate(rounds, 1):
                    if slot < len(joins):
                        with m.Case(n):
                            with m.If(~(fault("the tree leaves out the last pair") & (joins[slot] == (6, 7)))):
                                m.d.sync += partials[joins[slot][0]].eq(result)

        late = fault("a group of one beat is joined a cycle late") & self.first
        again = Signal()
        done = Signal()
        m.d.sync += again.eq(late & arriving & self.last)
        m.d.sync += done.eq(turn == len(rounds))
        with m.If(turn == len(rounds)):
            m.d.sync += turn.eq(0)
        with m.Elif(self.busy | (arriving & self.last & ~late) | again):
            m.d.sync += turn.eq(turn + 1)
        m.d.comb += [self.out.eq(partials[0]), self.done.eq(done)]
        return m

    @staticmethod
    def _targets(slot: int) -> dict[int, int]:
        """Position of a beat that has an element in `slot`, to that element's partial result."""
        width = 1 << slot.bit_length()
        return {start: start + slot for start in range(0, PARTIALS, width)}

    def _join(self, m: Module, slot: int, left: Value, right: Value) -> Value:
        """left op right."""
        add = Fp32AddComb()
        compare = Fp32Compare()
        m.submodules[f"add{slot}"] = add
        m.submodules[f"compare{slot}"] = compare
        m.d.comb += [
            Cat(add.a, add.b).eq(Cat(left, right)),
            Cat(compare.a, compare.b).eq(Cat(left, right)),
            compare.absolute.eq((self.op == AluOp.ABSMAX) | (self.op == AluOp.ABSMIN)),
            compare.smaller.eq((self.op == AluOp.MIN) | (self.op == AluOp.ABSMIN)),
        ]
        return Mux(self.op == AluOp.ADD, add.out, compare.out)
