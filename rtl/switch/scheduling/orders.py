"""A random order of the inputs of a switch, another one in each slot."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Orders", "distances"]

_SEED = 0x9E3779B97F4A7C15
_SPREAD = 5  # which random bit an exchange takes: every fifth


def distances(count: int) -> list[int]:
    """Distances at which neighbours are exchanged, in this order."""
    return [1 << k for k in range((count - 1).bit_length())]


class Orders(wiring.Component):
    """64 random bits (xorshift 13, 7, 17: linear, period 2^64 - 1) as settings of a `Permute`.

    exchange: by distance, bit `low` set where the places `low` and `low + distance` exchange what they hold;
    turn: by how many places all are turned then, +1 to +8 a step, so that every input sees every place alike.
    Timing: registers; `step` draws the next order.
    """

    def __init__(self, count: int):
        self.count = count
        super().__init__(
            {
                "step": In(1),
                "exchange": Out(data.ArrayLayout(count, len(distances(count)))),
                "turn": Out(range(count)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.count
        bits = Signal(64, init=_SEED)
        one, two, three = Signal(64), Signal(64), Signal(64)
        m.d.comb += [
            one.eq(bits ^ (bits << 13)),
            two.eq(one ^ (one >> 7)),
            three.eq(two ^ (two << 17)),
        ]
        used = 0
        for k, distance in enumerate(distances(n)):
            chosen = []
            for low in range(n):
                if low & distance or low + distance >= n:
                    chosen.append(Const(0, 1))
                else:
                    chosen.append(bits[(used * _SPREAD + used // 64) % 64])
                    used += 1
            m.d.comb += self.exchange[k].eq(Cat(*chosen))
        further = Signal(range(n + 8))
        turned = Signal(range(n + 8))
        m.d.comb += [
            further.eq(self.turn + 1 + bits[61:]),
            turned.eq(Mux(further >= n, further - n, further)),
        ]
        with m.If(self.step):
            m.d.sync += [bits.eq(three), self.turn.eq(Mux(turned >= n, turned - n, turned))]
        return m
