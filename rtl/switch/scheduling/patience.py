"""Nobody waits for ever: pairs of a switch are visited in turn, and who was not served becomes urgent."""

from math import gcd

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["STRICT_SLOTS", "VISIT_SLOTS", "Patience"]

VISIT_SLOTS = 16
"""Slots of a visit, after which what was not served is urgent."""
STRICT_SLOTS = 64
"""Slots after which it goes before strict units too."""


class Patience(wiring.Component):
    """Visits the diagonals of the crossbar: the pairs (input (o + diagonal) mod count, output o).

    asks, began: by output o a bit an input: which asks for o at all, which begins a unit to o. A pair that asked
    in every slot of a visit of `visit` slots and never began is `urgent` (by output) until it begins or ceases to
    ask; the visit lasts until no pair is. pair: by output, one-hot its input on the diagonal. before_strict: they
    have been urgent for `strict` slots. A walk visits every diagonal once; the next walk strides differently, so
    that nobody always comes after the same neighbour. Timing: registers; `step` ends a slot.
    """

    def __init__(self, count: int, *, visit: int = VISIT_SLOTS, strict: int = STRICT_SLOTS):
        self.count = count
        self.visit = visit
        self.most = visit + strict
        self.strides = [k for k in range(1, count) if gcd(k, count) == 1]
        # seen by proofs too
        self.diagonal = Signal(range(count))
        self.visits = Signal(range(count))  # of this walk
        self.walk = Signal(range(len(self.strides)))
        self.slots = Signal(range(self.most + 1))
        super().__init__(
            {
                "step": In(1),
                "asks": In(count).array(count),
                "began": In(count).array(count),
                "urgent": Out(count),
                "pair": Out(count).array(count),
                "before_strict": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.count
        strides, diagonal, visits, walk, slots = self.strides, self.diagonal, self.visits, self.walk, self.slots
        slots_next = Signal(range(self.most + 1))
        unserved = Signal(n, init=(1 << n) - 1)  # outputs whose pair asked and was not served in this visit
        still = Signal(n)
        on_diagonal = Signal(n)
        due = Signal()

        m.d.comb += [
            on_diagonal.eq(Const(1, n) << diagonal),
            due.eq((slots >= self.visit) & ~fault("a starved pair never becomes urgent")),
            self.before_strict.eq((slots == self.most) & ~fault("a starved pair never becomes urgent")),
            slots_next.eq(Mux(slots == self.most, slots, slots + 1)),
        ]
        for o in range(n):
            asks = (self.asks[o] & self.pair[o]).any()
            m.d.comb += [
                self.pair[o].eq(on_diagonal.rotate_left(o)),
                self.urgent[o].eq(due & unserved[o] & asks),
                still[o].eq(unserved[o] & asks & ~(self.began[o] & self.pair[o]).any()),
            ]
        stride = Array([Const(k, range(n)) for k in strides])[walk]
        further = Signal(range(2 * n))
        m.d.comb += further.eq(diagonal + stride)
        with m.If(self.step):
            m.d.sync += [slots.eq(slots_next), unserved.eq(still)]
            with m.If((slots_next >= self.visit) & ~still.any()):
                m.d.sync += [
                    slots.eq(0),
                    unserved.eq((1 << n) - 1),
                    diagonal.eq(Mux(further >= n, further - n, further)),
                    visits.eq(visits + 1),
                ]
                with m.If(visits == n - 1):
                    m.d.sync += [visits.eq(0), walk.eq(Mux(walk == len(strides) - 1, 0, walk + 1))]
        return m
