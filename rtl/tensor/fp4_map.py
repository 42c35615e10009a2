"""The programmable map in front of the array: four E2M1 numbers of a row become four E4M3FN numbers."""

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["Fp4Map"]

_ELEMENTS = 4


class Fp4Map(wiring.Component):
    """Byte k of row r in `out` (64 bits a row) is entry c of `map`, c the code in bits 4k of row r in `codes`.

    Entry i of the map is at bit 8i. Combinational; 0 while not `enable`, so that it costs a simulation nothing.
    """

    def __init__(self, rows: int):
        self.rows = rows
        super().__init__({"enable": In(1), "map": In(128), "codes": In(64 * rows), "out": Out(64 * rows)})

    def _entry(self, code: Value) -> Value:
        """The entry of a code. Two halves of 64 bits: a shift of more costs Verilator a call."""
        positive, negative = self.map[:64], self.map[64:]
        place = Cat(code[0] ^ fault("neighbouring entries of the map are exchanged"), code[1:3])
        half = Mux(code[3] & ~fault("negative numbers take the entries of positive ones"), negative, positive)
        return half.word_select(place, 8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        turned = fault("the four numbers of a row are reversed")
        with m.If(self.enable):
            for r in range(self.rows):
                codes = [self.codes[64 * r + 4 * k : 64 * r + 4 * k + 4] for k in range(_ELEMENTS)]
                entries = [self._entry(Mux(turned, codes[_ELEMENTS - 1 - k], codes[k])) for k in range(_ELEMENTS)]
                m.d.comb += self.out[64 * r : 64 * (r + 1)].eq(Cat(*entries))
        return m
