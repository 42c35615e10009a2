"""Vector instructions of OPIVV, OPIVX and OPIVI."""

from amaranth.hdl import Mux

from rtl.gpsimd.vector.decode_rules import VI, VV, Rules
from rtl.gpsimd.vector.layouts import Kind, Result, Second, Source

__all__ = ["decode_integer"]


def decode_integer(rules: Rules) -> None:
    """OPIVV, OPIVX and OPIVI."""
    m, w, o = rules.m, rules.bits, rules.o
    funct3, low = w[12:15], w[26]
    vector, immediate = funct3 == VV, funct3 == VI
    with m.Switch(w[26:32]):
        with m.Case(0b000000):  # vadd
            rules.legal(True, True, True)
            rules.lanes(Result.SUM)
        with m.Case(0b000010):  # vsub
            rules.legal(True, True, False)
            rules.lanes(Result.SUM, subtract=1)
        with m.Case(0b000011):  # vrsub
            rules.legal(False, True, True)
            rules.lanes(Result.SUM, subtract=1)
            m.d.comb += o.operands.swaps.eq(1)
        with m.Case("00010-"):  # vminu, vmin
            rules.legal(True, True, False)
            rules.lanes(Result.PICK, subtract=1, signed=low, on_less=1, inverts=1)
        with m.Case("00011-"):  # vmaxu, vmax
            rules.legal(True, True, False)
            rules.lanes(Result.PICK, subtract=1, signed=low, on_less=1)
        with m.Case(0b001001):
            rules.legal(True, True, True)
            rules.lanes(Result.AND)
        with m.Case(0b001010):
            rules.legal(True, True, True)
            rules.lanes(Result.OR)
        with m.Case(0b001011):
            rules.legal(True, True, True)
            rules.lanes(Result.XOR)
        with m.Case(0b001100):  # vrgather
            rules.legal(True, True, True)
            rules.permute(Mux(vector, Source.VECTOR, Source.SAME))
        with m.Case(0b001110):  # vslideup, vrgatherei16
            rules.legal(True, True, True)
            rules.permute(Mux(vector, Source.HALVES, Source.UP))
        with m.Case(0b001111):  # vslidedown
            rules.legal(False, True, True)
            rules.permute(Source.DOWN)
        with m.Case(0b010000):  # vadc
            rules.legal(True, True, True)
            rules.carry(0, False)
        with m.Case(0b010001):  # vmadc
            rules.legal(True, True, True)
            rules.carry(0, True)
        with m.Case(0b010010):  # vsbc
            rules.legal(True, True, False)
            rules.carry(1, False)
        with m.Case(0b010011):  # vmsbc
            rules.legal(True, True, False)
            rules.carry(1, True)
        with m.Case(0b010111):  # vmerge, vmv.v
            rules.legal(True, True, True)
            rules.lanes(Result.PICK, chooses=1)
            m.d.comb += o.carry_in.eq(1)
            with m.If(rules.bits[25]):
                m.d.comb += o.lane.result.eq(Result.SECOND)
                with m.If(rules.bits[20:25] != 0):
                    m.d.comb += o.illegal.eq(1)
        with m.Case("01100-"):  # vmseq, vmsne
            rules.legal(True, True, True)
            rules.compare(on_equal=1)
            m.d.comb += o.lane.inverts.eq(low)
        with m.Case("01101-"):  # vmsltu, vmslt
            rules.legal(True, True, False)
            rules.compare(on_less=1)
            m.d.comb += o.lane.signed.eq(low)
        with m.Case("01110-"):  # vmsleu, vmsle
            rules.legal(True, True, True)
            rules.compare(on_less=1, on_equal=1)
            m.d.comb += o.lane.signed.eq(low)
        with m.Case("01111-"):  # vmsgtu, vmsgt
            rules.legal(False, True, True)
            rules.compare(on_less=1, on_equal=1, inverts=1)
            m.d.comb += o.lane.signed.eq(low)
        with m.Case("10000-"):  # vsaddu, vsadd
            rules.legal(True, True, True)
            rules.lanes(Result.SATURATED, signed=low)
        with m.Case("10001-"):  # vssubu, vssub
            rules.legal(True, True, False)
            rules.lanes(Result.SATURATED, signed=low, subtract=1)
        with m.Case(0b100101):  # vsll
            rules.legal(True, True, True)
            rules.lanes(Result.LEFT, unsigned=True)
        with m.Case(0b100111):  # vsmul, vmv<n>r
            rules.legal(True, True, True)
            rules.lanes(Result.FRACTION, signed_first=1, signed_second=1)
            with m.If(immediate):
                m.d.comb += [
                    o.lane.result.eq(Result.SECOND),
                    o.second.eq(Second.VECTOR),
                    o.vs1.eq(rules.bits[20:25]),
                    o.is_whole.eq(1),
                    o.whole.eq(w[15:18]),
                    o.illegal.eq(~rules.bits[25] | ((w[15:20] & (w[15:20] + 1)[:5]) != 0) | w[18:20].any()),
                ]
        with m.Case("10100-"):  # vsrl, vsra
            rules.legal(True, True, True)
            rules.lanes(Result.RIGHT, unsigned=True, signed=low)
        with m.Case("10101-"):  # vssrl, vssra
            rules.legal(True, True, True)
            rules.lanes(Result.RIGHT, unsigned=True, signed=low, rounds=1)
        with m.Case("1011--"):  # vnsrl, vnsra, vnclipu, vnclip
            rules.legal(True, True, True)
            rules.lanes(Result.RIGHT, unsigned=True, signed=low, rounds=w[27])
            m.d.comb += [
                o.operands.narrows.eq(1),
                o.operands.widens_second.eq(1),
                o.operands.clips.eq(w[27]),
                o.operands.clips_signed.eq(low),
            ]
        with m.Case("11000-"):  # vwredsumu, vwredsum
            rules.legal(True, False, False)
            rules.lanes(Result.SUM)
            m.d.comb += [
                o.kind.eq(Kind.REDUCE),
                o.operands.widens_first.eq(1),
                o.operands.signed_first.eq(low),
            ]
