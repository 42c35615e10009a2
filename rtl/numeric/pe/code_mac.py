"""Fused multiply-add from and to codes, as a unit of its own for evaluation on arrays."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.formats import FORMATS
from rtl.numeric.pe.mac import Mac
from rtl.numeric.pe.unpack import Unpack

__all__ = ["Bf16Mac", "Fp16Mac"]


class _CodeMac(wiring.Component):
    """out = RN32(a * b + acc); a, b: codes of `FORMAT`; acc, out: FP32 codes.

    Timing: one result a cycle, LATENCY cycles after its operands.
    """

    FORMAT = "bf16"
    LATENCY = Mac.LATENCY

    a: In(16)
    b: In(16)
    acc: In(32)
    out: Out(32)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.mac = mac = Mac()
        for name, port, operand in (("a", self.a, mac.a), ("b", self.b, mac.b)):
            unpack = Unpack()
            m.submodules[f"unpack_{name}"] = unpack
            m.d.comb += [
                unpack.bits.eq(port),
                unpack.dtype.eq(FORMATS[self.FORMAT].code),
                operand.eq(unpack.operand),
            ]
        m.d.comb += [
            mac.acc.eq(self.acc),
            mac.enable.eq(1),
            self.out.eq(mac.out),
        ]
        return m


class Bf16Mac(_CodeMac):
    """BF16 operands. Fault 7 (FP16 subnormals) cannot show here."""

    FORMAT = "bf16"


class Fp16Mac(_CodeMac):
    """FP16 operands."""

    FORMAT = "fp16"
