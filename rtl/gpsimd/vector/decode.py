"""What a vector instruction is."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.gpsimd.vector.decode_integer import decode_integer
from rtl.gpsimd.vector.decode_memory import decode_memory
from rtl.gpsimd.vector.decode_multiply import decode_multiply
from rtl.gpsimd.vector.decode_rules import MVV, MVX, VI, VV, VX, Rules
from rtl.gpsimd.vector.layouts import VECTOR, Kind

__all__ = ["VectorDecode"]

_CONFIG = 7  # funct3 of OP-V


class VectorDecode(wiring.Component):
    """`bits`, of opcode OP-V, LOAD-FP or STORE-FP, as `o`: Zve32x (RISC-V "V" extension, sections 6 to 16 and 18).

    illegal: no such instruction, or one of floating point or of elements of 64 bits, whatever vtype is.
    Timing: combinational.
    """

    bits: In(32)
    o: Out(VECTOR)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        w, o = self.bits, self.o
        rules = Rules(m, w, o)
        m.d.comb += [
            o.masked.eq(~w[25]),
            o.vd.eq(w[7:12]),
            o.vs1.eq(w[15:20]),
            o.vs2.eq(w[20:25]),
            o.illegal.eq(1),
        ]
        with m.If(w[6]):
            with m.Switch(w[12:15]):
                with m.Case(_CONFIG):
                    self._config(m)
                with m.Case(VV, VI, VX):
                    decode_integer(rules)
                with m.Case(MVV, MVX):
                    decode_multiply(rules)
        with m.Else():
            decode_memory(rules)
        return m

    def _config(self, m: Module) -> None:
        """vsetvli, vsetivli and vsetvl."""
        w, o = self.bits, self.o
        m.d.comb += [o.kind.eq(Kind.CONFIG), o.writes_x.eq(1)]
        m.d.comb += o.illegal.eq(w[31] & ~w[30] & (w[25:30] != 0))
