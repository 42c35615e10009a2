"""One lane of the scalar engine: one element or a pair through its slots, a reduction, and the pair side by side."""

from amaranth.hdl import Cat, DomainRenamer, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.activation_tables import ROW_BITS, ROW_WORDS
from rtl.numeric.fp32.partial_sums import PartialSums
from rtl.numeric.functions.activation_table import ENTRY, FUNCTION_BITS
from rtl.scalar.slot import OPERATION, Slot

__all__ = ["LANE_DOMAINS", "PAIR", "REDUCTION", "SHARED", "Lane"]

SHARED = ("src", "enters", "take_a", "take_b", "first", "second", "func", "slope", "reduction", "dst", "leaves")
"""Ports that are the same for all lanes."""

LANE_DOMAINS = ("scalar_wide",)
"""Clock domains of its parts: the second slot's has edges while pairs are on their way."""

PAIR = data.StructLayout({"pair": 1, "bytes": 1})
"""Two elements side by side, of 8 bits or else of 16."""

REDUCTION = data.StructLayout(
    {
        "valid": 1,  # a beat for the reduction
        "position": 3,
        "first": 1,
        "last": 1,
        "op": 6,
        "own": 1,  # the beat is what the reduction gave, not an element
        "earlier": 1,  # the beat is the accumulator, or b
        "from_b": 1,
        "b": 32,
        "b_column": 1,
    }
)
"""What the reduction does in a cycle; rtl.scalar.reducer makes it."""


class Lane(wiring.Component):
    """`x` has an element, with `enters` two; `out` has a result, with `leaves` two; `total` is that of the reduction.

    What a slot does with an element, and when: Slot. `reduction` and `leaves` belong to the cycles of `result` and of
    `out`. Elements of a reduction come one by one. `take_a` and `take_b` keep `x` (in its cycle) as the lane's columns;
    `take_total` keeps `total` as accumulator. The second slot has the domain "scalar_wide".
    Reset: the accumulator is 0.
    """

    FUNCTION = Slot.FUNCTION
    RESULT = Slot.RESULT

    def __init__(self) -> None:
        super().__init__(
            {
                "x": In(32),
                "src": In(4),
                "enters": In(PAIR),
                "take_a": In(1),
                "take_b": In(1),
                "first": In(OPERATION),
                "second": In(OPERATION),
                "func": In(6),
                "slope": In(32),
                **{f"entry_address{j}": Out(FUNCTION_BITS + 9) for j in range(2)},
                **{f"entry{j}": In(ENTRY) for j in range(2)},
                **{f"row_address{j}": Out(ROW_BITS) for j in range(2)},
                **{f"row{j}": In(32 * ROW_WORDS) for j in range(2)},
                "reduction": In(REDUCTION),
                "take_total": In(1),
                "dst": In(4),
                "leaves": In(PAIR),
                "out": Out(32),
                "total": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a = Signal(32, reset_less=True)
        b = Signal(32, reset_less=True)
        with m.If(self.take_a):
            m.d.sync += a.eq(self.x)
        with m.If(self.take_b):
            m.d.sync += b.eq(self.x)

        m.submodules.slot0 = slot0 = Slot()
        slot1 = Slot()
        m.submodules.slot1 = DomainRenamer("scalar_wide")(slot1)
        for j, slot in enumerate((slot0, slot1)):
            m.d.comb += [
                slot.src.eq(self.src),
                slot.a.eq(a),
                slot.b.eq(b),
                slot.first.eq(self.first),
                slot.second.eq(self.second),
                slot.func.eq(self.func),
                slot.slope.eq(self.slope),
                slot.dst.eq(self.dst),
                getattr(self, f"entry_address{j}").eq(slot.entry_address),
                slot.entry.eq(getattr(self, f"entry{j}")),
                getattr(self, f"row_address{j}").eq(slot.row_address),
                slot.row.eq(getattr(self, f"row{j}")),
            ]
        m.d.comb += [
            slot0.x.eq(self.x),
            self.out.eq(slot0.out),
        ]
        with m.If(self.enters.pair):  # else nothing in the second slot moves
            m.d.comb += slot1.x.eq(Mux(self.enters.bytes, self.x[8:], self.x[16:]))
            with m.If(fault("the second element of a pair begins where the first one does")):
                m.d.comb += slot1.x.eq(self.x)
        with m.If(self.leaves.pair):
            m.d.comb += self.out.eq(Cat(slot0.out[:16], slot1.out[:16]))
            with m.If(self.leaves.bytes & ~fault("a pair of bytes leaves as half words")):
                m.d.comb += self.out.eq(Cat(slot0.out[:8], slot1.out[:8]))

        accumulator = Signal(32)
        beat = self.reduction
        before = Mux(beat.from_b, Mux(beat.b_column, b, beat.b), accumulator)
        m.submodules.partials = partials = PartialSums(1)
        m.d.comb += [
            partials.x[0].eq(slot0.result),
            partials.valid.eq(
                beat.valid & ~(beat.earlier & fault("a scalar lane leaves out the accumulator") & ~beat.from_b)
            ),
            partials.position.eq(beat.position),
            partials.first.eq(beat.first),
            partials.last.eq(beat.last),
            partials.op.eq(beat.op),
            self.total.eq(partials.out),
        ]
        with m.If(beat.own):
            m.d.comb += partials.x[0].eq(partials.out)
        with m.If(beat.earlier):
            m.d.comb += partials.x[0].eq(before)
        with m.If(self.take_total):
            m.d.sync += accumulator.eq(partials.out)
        return m
