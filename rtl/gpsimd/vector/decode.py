"""What a vector instruction is."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.vector.layouts import VECTOR, Kind, Result, Second, Source

__all__ = ["VectorDecode"]

_VV, _MVV, _VI, _VX, _MVX, _CONFIG = 0, 2, 3, 4, 6, 7  # funct3 of OP-V; 1 and 5 are of floating point


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
                with m.Case(_VV, _VI, _VX):
                    self._integer(m)
                with m.Case(_MVV, _MVX):
                    self._more(m)
        with m.Else():
            self._memory(m)
        return m

    def _config(self, m: Module) -> None:
        """vsetvli, vsetivli and vsetvl."""
        w, o = self.bits, self.o
        m.d.comb += [o.kind.eq(Kind.CONFIG), o.writes_x.eq(1)]
        m.d.comb += o.illegal.eq(w[31] & ~w[30] & (w[25:30] != 0))

    def _legal(self, m: Module, vv: bool, vx: bool, vi: bool) -> None:
        """The instruction exists with a vector, a scalar or an immediate beside vs2."""
        funct3 = self.bits[12:15]
        vector = (funct3 == _VV) | (funct3 == _MVV)
        scalar = (funct3 == _VX) | (funct3 == _MVX)
        legal = (vector if vv else 0) | (scalar if vx else 0) | ((funct3 == _VI) if vi else 0)
        m.d.comb += self.o.illegal.eq(~legal)

    def _lanes(self, m: Module, result: Result, unsigned: bool = False, **lane: int | Value) -> None:
        o = self.o
        funct3 = self.bits[12:15]
        immediate = Second.UNSIGNED if unsigned else Second.IMMEDIATE
        scalar = (funct3 == _VX) | (funct3 == _MVX)
        m.d.comb += [
            o.kind.eq(Kind.LANES),
            o.lane.result.eq(result),
            o.second.eq(Mux(funct3 == _VI, immediate, Mux(scalar, Second.SCALAR, Second.VECTOR))),
            *(o.lane[name].eq(value) for name, value in lane.items()),
        ]

    def _compare(self, m: Module, **lane: int) -> None:
        self._lanes(m, Result.SUM, subtract=1, **lane)
        m.d.comb += self.o.mask_result.eq(1)

    def _carry(self, m: Module, subtract: int, to_mask: bool) -> None:
        """vadc and its like: v0 is added, if vm is 0."""
        o = self.o
        self._lanes(m, Result.SUM, subtract=subtract, carries=o.masked, on_less=1)
        m.d.comb += [o.carry_in.eq(1), o.mask_result.eq(to_mask)]
        if not to_mask:
            with m.If(~o.masked):
                m.d.comb += o.illegal.eq(1)

    def _permute(self, m: Module, source: Source | Value) -> None:
        o = self.o
        funct3 = self.bits[12:15]
        scalar = (funct3 == _VX) | (funct3 == _MVX)
        m.d.comb += [
            o.kind.eq(Kind.PERMUTE),
            o.source.eq(source),
            o.second.eq(Mux(funct3 == _VI, Second.UNSIGNED, Mux(scalar, Second.SCALAR, Second.VECTOR))),
        ]

    def _integer(self, m: Module) -> None:
        """OPIVV, OPIVX and OPIVI."""
        w, o = self.bits, self.o
        funct3, low = w[12:15], w[26]
        vector, immediate = funct3 == _VV, funct3 == _VI
        with m.Switch(w[26:32]):
            with m.Case(0b000000):  # vadd
                self._legal(m, True, True, True)
                self._lanes(m, Result.SUM)
            with m.Case(0b000010):  # vsub
                self._legal(m, True, True, False)
                self._lanes(m, Result.SUM, subtract=1)
            with m.Case(0b000011):  # vrsub
                self._legal(m, False, True, True)
                self._lanes(m, Result.SUM, subtract=1)
                m.d.comb += o.operands.swaps.eq(1)
            with m.Case("00010-"):  # vminu, vmin
                self._legal(m, True, True, False)
                self._lanes(m, Result.PICK, subtract=1, signed=low, on_less=1, inverts=1)
            with m.Case("00011-"):  # vmaxu, vmax
                self._legal(m, True, True, False)
                self._lanes(m, Result.PICK, subtract=1, signed=low, on_less=1)
            with m.Case(0b001001):
                self._legal(m, True, True, True)
                self._lanes(m, Result.AND)
            with m.Case(0b001010):
                self._legal(m, True, True, True)
                self._lanes(m, Result.OR)
            with m.Case(0b001011):
                self._legal(m, True, True, True)
                self._lanes(m, Result.XOR)
            with m.Case(0b001100):  # vrgather
                self._legal(m, True, True, True)
                self._permute(m, Mux(vector, Source.VECTOR, Source.SAME))
            with m.Case(0b001110):  # vslideup, vrgatherei16
                self._legal(m, True, True, True)
                self._permute(m, Mux(vector, Source.HALVES, Source.UP))
            with m.Case(0b001111):  # vslidedown
                self._legal(m, False, True, True)
                self._permute(m, Source.DOWN)
            with m.Case(0b010000):  # vadc
                self._legal(m, True, True, True)
                self._carry(m, 0, False)
            with m.Case(0b010001):  # vmadc
                self._legal(m, True, True, True)
                self._carry(m, 0, True)
            with m.Case(0b010010):  # vsbc
                self._legal(m, True, True, False)
                self._carry(m, 1, False)
            with m.Case(0b010011):  # vmsbc
                self._legal(m, True, True, False)
                self._carry(m, 1, True)
            with m.Case(0b010111):  # vmerge, vmv.v
                self._legal(m, True, True, True)
                self._lanes(m, Result.PICK, chooses=1)
                m.d.comb += o.carry_in.eq(1)
                with m.If(~o.masked):
                    m.d.comb += o.lane.result.eq(Result.SECOND)
                    with m.If(o.vs2 != 0):
                        m.d.comb += o.illegal.eq(1)
            with m.Case("01100-"):  # vmseq, vmsne
                self._legal(m, True, True, True)
                self._compare(m, on_equal=1)
                m.d.comb += o.lane.inverts.eq(low)
            with m.Case("01101-"):  # vmsltu, vmslt
                self._legal(m, True, True, False)
                self._compare(m, on_less=1)
                m.d.comb += o.lane.signed.eq(low)
            with m.Case("01110-"):  # vmsleu, vmsle
                self._legal(m, True, True, True)
                self._compare(m, on_less=1, on_equal=1)
                m.d.comb += o.lane.signed.eq(low)
            with m.Case("01111-"):  # vmsgtu, vmsgt
                self._legal(m, False, True, True)
                self._compare(m, on_less=1, on_equal=1, inverts=1)
                m.d.comb += o.lane.signed.eq(low)
            with m.Case("10000-"):  # vsaddu, vsadd
                self._legal(m, True, True, True)
                self._lanes(m, Result.SATURATED, signed=low)
            with m.Case("10001-"):  # vssubu, vssub
                self._legal(m, True, True, False)
                self._lanes(m, Result.SATURATED, signed=low, subtract=1)
            with m.Case(0b100101):  # vsll
                self._legal(m, True, True, True)
                self._lanes(m, Result.LEFT, unsigned=True)
            with m.Case(0b100111):  # vsmul, vmv<n>r
                self._legal(m, True, True, True)
                self._lanes(m, Result.FRACTION, signed_first=1, signed_second=1)
                with m.If(immediate):
                    m.d.comb += [
                        o.lane.result.eq(Result.SECOND),
                        o.second.eq(Second.VECTOR),
                        o.vs1.eq(o.vs2),
                        o.is_whole.eq(1),
                        o.whole.eq(w[15:18]),
                        o.illegal.eq(o.masked | ((w[15:20] & (w[15:20] + 1)[:5]) != 0) | w[18:20].any()),
                    ]
            with m.Case("10100-"):  # vsrl, vsra
                self._legal(m, True, True, True)
                self._lanes(m, Result.RIGHT, unsigned=True, signed=low)
            with m.Case("10101-"):  # vssrl, vssra
                self._legal(m, True, True, True)
                self._lanes(m, Result.RIGHT, unsigned=True, signed=low, rounds=1)
            with m.Case("1011--"):  # vnsrl, vnsra, vnclipu, vnclip
                self._legal(m, True, True, True)
                self._lanes(m, Result.RIGHT, unsigned=True, signed=low, rounds=w[27])
                m.d.comb += [
                    o.operands.narrows.eq(1),
                    o.operands.widens_second.eq(1),
                    o.operands.clips.eq(w[27]),
                    o.operands.clips_signed.eq(low),
                ]
            with m.Case("11000-"):  # vwredsumu, vwredsum
                self._legal(m, True, False, False)
                self._lanes(m, Result.SUM)
                m.d.comb += [
                    o.kind.eq(Kind.REDUCE),
                    o.operands.widens_first.eq(1),
                    o.operands.signed_first.eq(low),
                ]

    def _more(self, m: Module) -> None:
        """OPMVV and OPMVX."""
        w, o = self.bits, self.o
        funct3, low = w[12:15], w[26]
        vector = funct3 == _MVV
        operands = o.operands
        with m.Switch(w[26:32]):
            with m.Case("000---"):  # reductions
                self._legal(m, True, False, False)
                self._lanes(m, Result.SUM)
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
                self._legal(m, True, True, False)
                self._lanes(m, Result.AVERAGE, signed=low, subtract=w[27])
            with m.Case("00111-"):  # vslide1up, vslide1down
                self._legal(m, False, True, False)
                self._permute(m, Mux(low, Source.DOWN_ONE, Source.UP_ONE))
            with m.Case(0b010000):
                self._moves(m, vector)
            with m.Case(0b010010):  # vzext, vsext
                self._lanes(m, Result.SECOND)
                m.d.comb += [
                    o.illegal.eq(~vector | (w[17:20] != 1)),
                    operands.swaps.eq(1),
                    operands.widens_first.eq(1),
                    operands.quarters.eq(~w[16]),
                    operands.signed_first.eq(w[15]),
                ]
            with m.Case(0b010100):
                self._masks(m, vector)
            with m.Case(0b010111):  # vcompress
                self._permute(m, Source.COMPRESS)
                m.d.comb += o.illegal.eq(~vector | o.masked)
            with m.Case("011---"):  # logic of masks
                m.d.comb += [o.kind.eq(Kind.BITS), o.illegal.eq(~vector | o.masked)]
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
                self._legal(m, True, True, False)
                self._lanes(m, Result.SUM, signed=low)
                m.d.comb += [o.kind.eq(Kind.DIVIDE), o.bits.eq(w[27])]
            with m.Case("1001--"):  # vmulhu, vmul, vmulhsu, vmulh
                self._legal(m, True, True, False)
                self._lanes(m, Result.HIGH, signed_first=w[27], signed_second=w[27] & low)
                with m.If(w[26:28] == 1):
                    m.d.comb += o.lane.result.eq(Result.LOW)
            with m.Case("101--1"):  # vmadd, vnmsub, vmacc, vnmsac
                self._legal(m, True, True, False)
                self._lanes(m, Result.ADDED, subtract=w[27])
                m.d.comb += [operands.accumulates.eq(1), operands.to_third.eq(~w[28])]
            with m.Case("110---"):  # vwadd to vwsub.w
                self._legal(m, True, True, False)
                self._lanes(m, Result.SUM, subtract=w[27])
                m.d.comb += [
                    operands.widens_first.eq(~w[28]),
                    operands.widens_second.eq(1),
                    operands.signed_first.eq(low),
                    operands.signed_second.eq(low),
                ]
            with m.Case("111---"):  # vwmulu, vwmulsu, vwmul, vwmaccu, vwmacc, vwmaccus, vwmaccsu
                accumulates = w[28]
                self._legal(m, True, True, False)
                self._lanes(m, Result.LOW)
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

    def _moves(self, m: Module, vector: Value) -> None:
        """vmv.x.s, vcpop, vfirst; vmv.s.x."""
        o = self.o
        with m.If(~vector):
            self._lanes(m, Result.SECOND)
            m.d.comb += [o.scalar_result.eq(1), o.illegal.eq(o.masked | (o.vs2 != 0))]
        with m.Else():
            with m.Switch(o.vs1):
                with m.Case(0b00000):
                    m.d.comb += [o.kind.eq(Kind.MOVE_OUT), o.writes_x.eq(1), o.illegal.eq(o.masked)]
                with m.Case(0b10000, 0b10001):
                    m.d.comb += [o.kind.eq(Kind.COUNT), o.writes_x.eq(1), o.illegal.eq(0), o.bits.eq(o.vs1[0])]

    def _masks(self, m: Module, vector: Value) -> None:
        """vmsbf, vmsof, vmsif, viota, vid."""
        o = self.o
        with m.If(vector):
            with m.Switch(o.vs1):
                with m.Case(1, 2, 3):
                    m.d.comb += [o.kind.eq(Kind.FIRST), o.mask_result.eq(1), o.illegal.eq(0), o.bits.eq(o.vs1[:2])]
                with m.Case(0b10000, 0b10001):
                    m.d.comb += [o.kind.eq(Kind.IOTA), o.bits.eq(o.vs1[0])]
                    m.d.comb += o.illegal.eq(o.vs1[0] & (o.vs2 != 0))

    def _memory(self, m: Module) -> None:
        """Loads and stores (section 7)."""
        w, o = self.bits, self.o
        mop, unit, fields = w[26:28], w[20:25], w[29:32]
        width = Signal(2)
        m.d.comb += [
            o.kind.eq(Kind.MEMORY),
            o.store.eq(w[5]),
            o.width.eq(width),
            o.strided.eq(mop == 2),
            o.indexed.eq(mop[0]),
            o.fields.eq(fields),
        ]
        with m.Switch(w[12:15]):
            with m.Case(0):
                m.d.comb += [width.eq(0), o.illegal.eq(w[28])]
            with m.Case(5):
                m.d.comb += [width.eq(1), o.illegal.eq(w[28])]
            with m.Case(6):
                m.d.comb += [width.eq(2), o.illegal.eq(w[28])]
        with m.If(mop == 0):
            with m.Switch(unit):
                with m.Case(0):
                    pass
                with m.Case(0b01000):
                    m.d.comb += [o.is_whole.eq(1), o.whole.eq(fields), o.fields.eq(0)]
                    powers = (fields & (fields + 1)[:3]) == 0
                    with m.If(o.masked | ~powers | (o.store & (width != 0))):
                        m.d.comb += o.illegal.eq(1)
                with m.Case(0b01011):
                    m.d.comb += o.is_mask.eq(1)
                    with m.If(o.masked | (width != 0) | (fields != 0)):
                        m.d.comb += o.illegal.eq(1)
                with m.Case(0b10000):
                    m.d.comb += o.first_only.eq(1)
                    with m.If(o.store):
                        m.d.comb += o.illegal.eq(1)
                with m.Default():
                    m.d.comb += o.illegal.eq(1)
