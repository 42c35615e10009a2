"""Vector instructions of OPMVV and OPMVX."""

from amaranth.hdl import Mux, Value

from rtl.base.fault import fault
from rtl.gpsimd.vector.decode_rules import MVV, Rules
from rtl.gpsimd.vector.layouts import Kind, Result, Source

__all__ = ["decode_multiply"]


def decode_multiply(rules: Rules) -> None:
    """OPMVV and OPMVX."""
    m, w, o = rules.m, rules.bits, rules.o
    funct3, low = w[12:15], w[26]
    vector = funct3 == MVV
    operands = o.operands
    with m.Switch(w[26:32]):
        with m.Case("000---"):  # reductions
            rules.legal(True, False, False)
            rules.lanes(Result.SUM)
            m.d.comb += o.kind.eq(Kind.REDUCE)
            with m.Switch(w[26:29]):
                for n, result in ((1, Result.AND), (2, Result.OR), (3, Result.XOR)):
                    with m.Case(n):
                        m.d.comb += o.lane.result.eq(result)
                with m.Case("1--"):
                    m.d.comb += [
                        o.lane.result.eq(Result.PICK),
                        o.lane.subtract.eq(1),
                        o.lane.on_less.eq(1),
                        o.lane.signed.eq(low),
                        o.lane.inverts.eq(~w[27]),
                    ]
        with m.Case("0010--"):  # vaaddu, vaadd, vasubu, vasub
            rules.legal(True, True, False)
            rules.lanes(Result.AVERAGE, signed=low, subtract=w[27])
        with m.Case("00111-"):  # vslide1up, vslide1down
            rules.legal(False, True, False)
            rules.permute(Mux(low, Source.DOWN_ONE, Source.UP_ONE))
        with m.Case(0b010000):
            _moves(rules, vector)
        with m.Case(0b010010):  # vzext, vsext
            rules.lanes(Result.SECOND)
            m.d.comb += [
                o.illegal.eq(~vector | (w[17:20] != 1)),
                operands.swaps.eq(1),
                operands.widens_first.eq(1),
                operands.quarters.eq(~w[16]),
                operands.signed_first.eq(w[15]),
            ]
        with m.Case(0b010100):
            _masks(rules, vector)
        with m.Case(0b010111):  # vcompress
            rules.permute(Source.COMPRESS)
            m.d.comb += o.illegal.eq(~vector | ~rules.bits[25])
        with m.Case("011---"):  # logic of masks
            m.d.comb += [o.kind.eq(Kind.BITS), o.illegal.eq(~vector | ~rules.bits[25])]
            m.d.comb += [o.mask_result.eq(1), o.lane.result.eq(Result.AND)]
            with m.Switch(w[26:29]):
                for n, result, bits in (
                    (0, Result.AND, 0b010),  # vmandn: bits invert vs2, vs1, the result
                    (1, Result.AND, 0),
                    (2, Result.OR, 0),
                    (3, Result.XOR, 0),
                    (4, Result.OR, 0b010),
                    (5, Result.AND, 0b100),
                    (6, Result.OR, 0b100),
                    (7, Result.XOR, 0b100),
                ):
                    with m.Case(n):
                        m.d.comb += [o.lane.result.eq(result), o.bits.eq(bits)]
        with m.Case("1000--"):  # vdivu, vdiv, vremu, vrem
            rules.legal(True, True, False)
            rules.lanes(Result.SUM, signed=low)
            m.d.comb += [o.kind.eq(Kind.DIVIDE), o.bits.eq(w[27])]
        with m.Case("1001--"):  # vmulhu, vmul, vmulhsu, vmulh
            rules.legal(True, True, False)
            rules.lanes(Result.HIGH, signed_first=w[27], signed_second=w[27] & low)
            with m.If(w[26:28] == 1):
                m.d.comb += o.lane.result.eq(Result.LOW)
        with m.Case("101--1"):  # vmadd, vnmsub, vmacc, vnmsac
            rules.legal(True, True, False)
            rules.lanes(Result.ADDED, subtract=w[27])
            m.d.comb += [operands.accumulates.eq(1), operands.to_third.eq(~w[28])]
        with m.Case("110---"):  # vwadd to vwsub.w
            rules.legal(True, True, False)
            rules.lanes(Result.SUM, subtract=w[27])
            m.d.comb += [
                operands.widens_first.eq(~w[28]),
                operands.widens_second.eq(1),
                operands.signed_first.eq(low),
                operands.signed_second.eq(low),
            ]
        with m.Case("111---"):  # vwmulu, vwmulsu, vwmul, vwmaccu, vwmacc, vwmaccus, vwmaccsu
            accumulates = w[28]
            rules.legal(True, True, False)
            rules.lanes(Result.LOW)
            m.d.comb += [operands.widens_first.eq(1), operands.widens_second.eq(1)]
            with m.If(accumulates):
                m.d.comb += [o.lane.result.eq(Result.ADDED), operands.accumulates.eq(1)]
            with m.Switch(w[26:29]):
                with m.Case(0, 4):
                    pass
                with m.Case(3, 5):
                    m.d.comb += [operands.signed_first.eq(1), operands.signed_second.eq(1)]
                with m.Case(2):
                    m.d.comb += operands.signed_first.eq(1)
                with m.Case(6):  # vwmaccus: rs1 is unsigned
                    m.d.comb += operands.signed_first.eq(1)
                    with m.If(vector):
                        m.d.comb += o.illegal.eq(1)
                with m.Case(7):  # vwmaccsu: vs1 is signed
                    m.d.comb += operands.signed_second.eq(~fault("vwmaccsu takes its scalar as unsigned"))
                with m.Default():
                    m.d.comb += o.illegal.eq(1)


def _moves(rules: Rules, vector: Value) -> None:
    """vmv.x.s, vcpop, vfirst; vmv.s.x."""
    m, o = rules.m, rules.o
    with m.If(~vector):
        rules.lanes(Result.SECOND)
        m.d.comb += [o.scalar_result.eq(1), o.illegal.eq(~rules.bits[25] | (rules.bits[20:25] != 0))]
    with m.Else():
        with m.Switch(rules.bits[15:20]):
            with m.Case(0b00000):
                m.d.comb += [o.kind.eq(Kind.MOVE_OUT), o.writes_x.eq(1), o.illegal.eq(~rules.bits[25])]
            with m.Case(0b10000, 0b10001):
                m.d.comb += [o.kind.eq(Kind.COUNT), o.writes_x.eq(1), o.illegal.eq(0), o.bits.eq(rules.bits[15:20][0])]


def _masks(rules: Rules, vector: Value) -> None:
    """vmsbf, vmsof, vmsif, viota, vid."""
    m, o = rules.m, rules.o
    with m.If(vector):
        with m.Switch(rules.bits[15:20]):
            with m.Case(1, 2, 3):
                m.d.comb += [
                    o.kind.eq(Kind.FIRST),
                    o.mask_result.eq(1),
                    o.illegal.eq(0),
                    o.bits.eq(rules.bits[15:20][:2]),
                ]
            with m.Case(0b10000, 0b10001):
                m.d.comb += [o.kind.eq(Kind.IOTA), o.bits.eq(rules.bits[15:20][0])]
                m.d.comb += o.illegal.eq(rules.bits[15:20][0] & (rules.bits[20:25] != 0))
