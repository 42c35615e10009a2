"""MX dot product from and to codes, as a unit of its own for evaluation on arrays."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.numeric.pe.element import ELEMENTS
from rtl.numeric.pe.pe_mac import PeMac
from rtl.numeric.pe.unpack_element import UnpackElement

__all__ = ["MxDot"]


class MxDot(wiring.Component):
    """out = RN32(RN32(sum of a[k] * b[k], times both scales) + acc), LATENCY cycles later; one a cycle.

    a, b: four codes each, code k in bits 8k + 7 to 8k, of the formats `fmt_a` and `fmt_b` (formats.Format.code: E4M3FN,
    E4M3, E5M2 or E2M1); sa, sb: scale codes, E8M0 or with `scale_fmt` = 1 E4M3FN; acc, out: FP32 codes. E4M3 beside
    E4M3FN is computed too, but the door refuses it.
    """

    LATENCY = PeMac.LATENCY

    a: In(8 * ELEMENTS)
    b: In(8 * ELEMENTS)
    sa: In(8)
    sb: In(8)
    acc: In(32)
    fmt_a: In(4)
    fmt_b: In(4)
    scale_fmt: In(1)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.mac = mac = PeMac()
        sides = (("a", self.a, self.fmt_a, self.sa, mac.a), ("b", self.b, self.fmt_b, self.sb, mac.b))
        for name, codes, dtype, scale, lane in sides:
            m.d.comb += lane.scale.eq(scale)
            for k in range(ELEMENTS):
                unpack = UnpackElement()
                m.submodules[f"unpack_{name}{k}"] = unpack
                m.d.comb += [
                    unpack.bits.eq(codes.word_select(k, 8)),
                    unpack.dtype.eq(dtype),
                    lane.elements[k].eq(unpack.element),
                ]
        m.d.comb += [
            mac.dot.eq(1),
            mac.scale_e4m3.eq(self.scale_fmt),
            mac.acc.eq(self.acc),
            mac.enable.eq(1),
            self.out.eq(mac.out),
        ]
        return m
