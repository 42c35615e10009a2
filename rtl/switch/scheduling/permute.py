"""Vectors over the inputs of a switch in a random order, and back."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.switch.scheduling.orders import distances

__all__ = ["Permute"]


class Permute(wiring.Component):
    """`vectors` vectors of a bit an input: o has at place p what i has for the input at p; back: the reverse.

    exchange and turn are those of `Orders`. Exchanges at distances 1, 2, 4, ..., then a turn of the whole; the way
    back undoes them in the reverse order. Timing: combinational, 2 log2(count) multiplexers deep.
    """

    def __init__(self, count: int, vectors: int, *, back: bool = False):
        self.count = count
        self.vectors = vectors
        self.back = back
        super().__init__(
            {
                "exchange": In(data.ArrayLayout(count, len(distances(count)))),
                "turn": In(range(count)),
                "i": In(count).array(vectors),
                "o": Out(count).array(vectors),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.count
        exchanges = [("exchange", k, d) for k, d in enumerate(distances(n))]
        turns = [("turn", k, 1 << k) for k in range(len(self.turn))]
        steps = [*exchanges, *turns]
        for v in range(self.vectors):
            x = Signal(n, name=f"i_{v}")
            m.d.comb += x.eq(self.i[v])
            for what, k, distance in reversed(steps) if self.back else steps:
                y = Signal(n, name=f"{what}_{v}_{k}")
                if what == "turn":
                    turned = x.rotate_right(distance % n) if self.back else x.rotate_left(distance % n)
                    m.d.comb += y.eq(Mux(self.turn[k], turned, x))
                else:
                    both = Signal(n, name=f"both_{v}_{k}")  # where two that exchange differ
                    m.d.comb += [
                        both.eq((x ^ (x >> distance)) & self.exchange[k]),
                        y.eq(x ^ both ^ (both << distance)),
                    ]
                x = y
            kept = fault("the order of the inputs is not undone") if self.back else Const(0, 1)
            m.d.comb += self.o[v].eq(Mux(kept, self.i[v], x))
        return m
