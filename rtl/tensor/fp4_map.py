"""The programmable map in front of the array: four E2M1 numbers of a row become four E4M3FN numbers."""

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.placed import Repeated

__all__ = ["Fp4Lane", "fp4_map"]

_ELEMENTS = 4


class Fp4Lane(wiring.Component):
    """Byte k of `out` is entry c of `map`, c the code in bits 4k of `codes`; the bytes above are 0.

    Entry i of the map is at bit 8i. Combinational; `out` is `codes` while not `enable`.
    """

    enable: In(1)
    map: In(128)
    codes: In(64)
    out: Out(64)

    def _entry(self, code: Value) -> Value:
        """The entry of a code. Two halves of 64 bits: a shift of more costs Verilator a call."""
        positive, negative = self.map[:64], self.map[64:]
        place = Cat(code[0] ^ fault("neighbouring entries of the map are exchanged"), code[1:3])
        half = Mux(code[3] & ~fault("negative numbers take the entries of positive ones"), negative, positive)
        return half.word_select(place, 8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        turned = fault("the four numbers of a row are reversed")
        codes = [self.codes[4 * k : 4 * k + 4] for k in range(_ELEMENTS)]
        entries = [self._entry(Mux(turned, codes[_ELEMENTS - 1 - k], codes[k])) for k in range(_ELEMENTS)]
        m.d.comb += self.out.eq(Mux(self.enable, Cat(*entries), self.codes))
        return m


def fp4_map(rows: int) -> Repeated:
    """A Fp4Lane for each of `rows` rows, as a loop: no row looks at the map while not `enable`."""
    return Repeated(f"plexus_fp4_map_{rows}", Fp4Lane, rows, shared=("enable", "map"), clocked=False)
