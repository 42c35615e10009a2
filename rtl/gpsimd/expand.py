"""An instruction of 16 bits as the one of 32 bits that does the same (RISC-V unprivileged ISA, chapter "C")."""

from amaranth.hdl import Cat, Const, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["Expand"]

_LOAD, _OP_IMM, _STORE, _OP, _LUI = 0x03, 0x13, 0x23, 0x33, 0x37
_BRANCH, _JALR, _JAL = 0x63, 0x67, 0x6F


def _r(opcode: int, funct3: Value | int, rd: Value | int, rs1: Value | int, rs2: Value | int, funct7: Value | int):
    def bits(value: Value | int, width: int) -> Value:
        return Const(value, width) if isinstance(value, int) else value

    return Cat(Const(opcode, 7), bits(rd, 5), bits(funct3, 3), bits(rs1, 5), bits(rs2, 5), bits(funct7, 7))


def _i(opcode: int, funct3: int, rd: Value | int, rs1: Value | int, immediate: Value) -> Value:
    return _r(opcode, funct3, rd, rs1, immediate[:5], immediate[5:12])


def _signed(value: Value, width: int) -> Value:
    return Cat(value, value[-1].replicate(width - len(value)))


class Expand(wiring.Component):
    """`half`, whose two low bits are not 11, as `word`. `illegal`: reserved, of another extension or RV64's.

    Timing: combinational.
    """

    half: In(16)
    word: Out(32)
    illegal: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c, word = self.half, self.word
        rd, rs2 = c[7:12], c[2:7]
        # the eight registers from x8 on
        low, high = Cat(c[2:5], Const(1, 2)), Cat(c[7:10], Const(1, 2))
        small = Cat(c[2:7], c[12])  # an immediate of 6 bits, and the shift amount
        immediate = _signed(small, 12)
        jump = _signed(Cat(c[3:6], c[11], c[2], c[7], c[6], c[9:11], c[8], c[12]), 20)
        target = Cat(c[3:5], c[10:12], c[2], c[5:7], c[12])  # of a branch, from bit 1 on
        word_offset = Cat(Const(0, 2), c[6], c[10:13], c[5], Const(0, 5))
        stack_load = Cat(Const(0, 2), c[4:7], c[12], c[2:4], Const(0, 4))
        stack_store = Cat(Const(0, 2), c[9:13], c[7:9], Const(0, 4))
        wide = Cat(Const(0, 2), c[6], c[5], c[11:13], c[7:11], Const(0, 2))  # c.addi4spn
        stack = _signed(Cat(Const(0, 4), c[6], c[2], c[5], c[3:5], c[12]), 12)  # c.addi16sp

        def jal(link: int) -> Value:
            return Cat(Const(_JAL, 7), Const(link, 5), jump[11:19], jump[10], jump[:10], jump[19])

        def branch(funct3: int) -> Value:
            far = _signed(target, 12)  # bits 1 to 12 of the offset
            return Cat(Const(_BRANCH, 7), far[10], far[:4], Const(funct3, 3), high, Const(0, 5), far[4:10], far[11])

        with m.Switch(Cat(c[13:16], c[:2])):
            with m.Case("00000"):
                m.d.comb += [word.eq(_i(_OP_IMM, 0, low, 2, wide)), self.illegal.eq(c[5:13] == 0)]
            with m.Case("00010"):
                m.d.comb += word.eq(_i(_LOAD, 2, low, high, word_offset))
            with m.Case("00110"):
                m.d.comb += word.eq(_r(_STORE, 2, word_offset[:5], high, low, word_offset[5:12]))
            with m.Case("01000"):
                m.d.comb += word.eq(_i(_OP_IMM, 0, rd, rd, immediate))
            with m.Case("01001"):
                m.d.comb += word.eq(jal(1))
            with m.Case("01010"):
                m.d.comb += word.eq(_i(_OP_IMM, 0, rd, 0, immediate))
            with m.Case("01011"):
                m.d.comb += self.illegal.eq(small == 0)
                with m.If(rd == 2):
                    m.d.comb += word.eq(_i(_OP_IMM, 0, 2, 2, stack))
                with m.Else():
                    m.d.comb += word.eq(Cat(Const(_LUI, 7), rd, _signed(small, 20)))
            with m.Case("01100"):
                with m.Switch(c[10:12]):
                    with m.Case(0):
                        m.d.comb += [word.eq(_r(_OP_IMM, 5, high, high, small[:5], 0)), self.illegal.eq(c[12])]
                    with m.Case(1):
                        m.d.comb += [word.eq(_r(_OP_IMM, 5, high, high, small[:5], 0x20)), self.illegal.eq(c[12])]
                    with m.Case(2):
                        m.d.comb += word.eq(_i(_OP_IMM, 7, high, high, immediate))
                    with m.Case(3):
                        m.d.comb += self.illegal.eq(c[12])
                        with m.Switch(c[5:7]):
                            with m.Case(0):
                                m.d.comb += word.eq(_r(_OP, 0, high, high, low, 0x20))
                            for n, funct3 in ((1, 4), (2, 6), (3, 7)):
                                with m.Case(n):
                                    m.d.comb += word.eq(_r(_OP, funct3, high, high, low, 0))
            with m.Case("01101"):
                m.d.comb += word.eq(jal(0))
            with m.Case("01110"):
                m.d.comb += word.eq(branch(0))
            with m.Case("01111"):
                m.d.comb += word.eq(branch(1))
            with m.Case("10000"):
                m.d.comb += [word.eq(_r(_OP_IMM, 1, rd, rd, small[:5], 0)), self.illegal.eq(c[12])]
            with m.Case("10010"):
                m.d.comb += [word.eq(_i(_LOAD, 2, rd, 2, stack_load)), self.illegal.eq(rd == 0)]
            with m.Case("10100"):
                with m.If(rs2 != 0):
                    source = c[12].replicate(5) & rd
                    m.d.comb += word.eq(_r(_OP, 0, rd, source, rs2, 0))
                with m.Elif(c[12] & (rd == 0)):
                    m.d.comb += word.eq(0x00100073)  # ebreak
                with m.Else():
                    link = Cat(c[12] & ~fault("c.jalr does not link"), Const(0, 4))
                    m.d.comb += [word.eq(_i(_JALR, 0, link, rd, Const(0, 12))), self.illegal.eq(rd == 0)]
            with m.Case("10110"):
                m.d.comb += word.eq(_r(_STORE, 2, stack_store[:5], 2, rs2, stack_store[5:12]))
            with m.Default():  # floating point
                m.d.comb += self.illegal.eq(1)
        return m
