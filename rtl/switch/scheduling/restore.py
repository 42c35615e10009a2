"""A matching of places back in the order of the inputs."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.switch.scheduling.orders import distances
from rtl.switch.scheduling.permute import Permute

__all__ = ["Restore"]


class Restore(wiring.Component):
    """found, index: what a `Wavefront` over places found. rows: inputs that have an output; output: its number, by
    input; match: by output, one-hot its input. exchange and turn are those of `Orders`. Timing: combinational.
    """

    def __init__(self, count: int):
        self.count = count
        bits = (count - 1).bit_length()
        super().__init__(
            {
                "exchange": In(data.ArrayLayout(count, len(distances(count)))),
                "turn": In(range(count)),
                "found": In(count),
                "index": In(data.ArrayLayout(count, bits)),
                "rows": Out(count),
                "output": Out(data.ArrayLayout(range(count), count)),
                "match": Out(count).array(count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.count
        vectors = [self.found, *(self.index[b] for b in range((n - 1).bit_length()))]
        m.submodules.permute = permute = Permute(n, len(vectors), back=True)
        m.d.comb += [permute.exchange.eq(self.exchange), permute.turn.eq(self.turn)]
        m.d.comb += [permute.i[v].eq(vector) for v, vector in enumerate(vectors)]
        m.d.comb += self.rows.eq(permute.o[0])
        reaches = [Signal(n, name=f"reaches_{i}") for i in range(n)]
        for i in range(n):
            m.d.comb += [
                self.output[i].eq(Cat(permute.o[v][i] for v in range(1, len(vectors)))),
                reaches[i].eq(Mux(self.rows[i], Const(1, n) << self.output[i], 0)),
            ]
        m.d.comb += [self.match[o].eq(Cat(reach[o] for reach in reaches)) for o in range(n)]
        return m
