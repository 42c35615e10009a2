"""The last cycle of a pass: what is written to which register."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.gpsimd.vector.active import bytes_of
from rtl.gpsimd.vector.layouts import VECTOR, Kind, Source
from rtl.gpsimd.vector.passes import PASS, Phase

__all__ = ["WriteBack"]


class WriteBack(wiring.Component):
    """`take`: `e` is a pass of instruction `i`, whose operands are there; valid: in the cycle before one was.

    computed: bytes of elements that count; narrow: the same of elements of half the width, in half a register.
    elements: as bits of a mask. number: register of the group vd. made: what the pass has made of its operands, and of
    a permutation or division `made_bytes`; masks: likewise, a mask. total: of a reduction. result, flag, saturates: of
    the lanes, in the next cycle. old: vd, in this cycle and the next.
    Timing: all outputs in the next cycle; `value`: for rd.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits, places = 32 * lanes, 4 * lanes
        super().__init__(
            {
                "take": In(1),
                "e": In(PASS),
                "i": In(VECTOR),
                "size": In(2),
                "computed": In(places),
                "narrow": In(places // 2),
                "elements": In(bits),
                "number": In(3),
                "made": In(bits),
                "made_bytes": In(places),
                "masks": In(bits),
                "total": In(bits),
                "old": In(bits),
                "result": In(bits),
                "flag": In(places),
                "saturates": In(places),
                "valid": Out(1),
                "saturated": Out(1),
                "value": Out(32),
                "ends": Out(1),
                "write": Out(1),
                "write_number": Out(5),
                "write_data": Out(bits),
                "write_mask": Out(places),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, places = self.lanes, 4 * self.lanes
        compress = self.i.source == Source.COMPRESS
        e, valid = Signal(PASS), self.valid
        i, size = Signal(VECTOR), Signal(2)  # of e
        kind, operands = i.kind, i.operands
        to_mask = i.mask_result & (kind == Kind.LANES)
        held, bytes_, firsts, number = Signal(32 * lanes), Signal(places), Signal(places), Signal(5)
        m.d.sync += valid.eq(self.take)
        with m.If(self.take):
            m.d.sync += [
                e.eq(self.e),
                i.eq(self.i),
                size.eq(self.size),
                held.eq(self.made),
                number.eq((self.i.vd + self.number)[:5]),
                firsts.eq(self.computed & _first_bytes(self.size, lanes)),
                bytes_.eq(self.computed),
            ]
            with m.If(self.i.operands.narrows):
                nothing = Const(0, places // 2)
                m.d.sync += bytes_.eq(Mux(self.e.outer[0], Cat(nothing, self.narrow), self.narrow))
            with m.Switch(self.i.kind):
                with m.Case(Kind.BITS, Kind.FIRST):
                    m.d.sync += [held.eq(self._into_mask(self.masks)), bytes_.eq(-1)]
                with m.Case(Kind.PERMUTE):
                    m.d.sync += bytes_.eq(self.made_bytes & (self.computed | compress.replicate(places)))
                with m.Case(Kind.DIVIDE):
                    m.d.sync += bytes_.eq(self.made_bytes & self.computed)

        each, last = valid & (e.phase == Phase.EACH), valid & (e.phase == Phase.LAST)
        flags = Signal(32 * lanes)
        with m.If(each & to_mask):
            self._flags(m, flags, size, e.outer)
        narrowed = Cat(
            Mux(size == 1, Cat(lane[:8], lane[16:24]), lane[:16])
            for lane in (self.result[32 * n : 32 * n + 32] for n in range(lanes))
        )
        m.d.comb += [
            self.write_number.eq(number),
            self.write_data.eq(held),
            self.write_mask.eq(bytes_),
            self.value.eq(held[:32]),
            self.ends.eq(valid & e.ends),
            self.saturated.eq(valid & (kind == Kind.LANES) & (firsts & self.saturates).any()),
        ]
        with m.Switch(kind):
            with m.Case(Kind.LANES):
                with m.If(to_mask):
                    m.d.comb += [
                        self.write.eq(last),
                        self.write_data.eq(self._into_mask(flags)),
                        self.write_mask.eq(-1),
                    ]
                with m.Else():
                    m.d.comb += self.write.eq(each)
                    m.d.comb += self.write_data.eq(Mux(operands.narrows, Cat(narrowed, narrowed), self.result))
            with m.Case(Kind.REDUCE):
                m.d.comb += [
                    self.write.eq(last),
                    self.write_data.eq(self.total),
                    self.write_mask.eq(bytes_of(Const(1, 32 * lanes), size, lanes)),
                ]
            with m.Case(Kind.PERMUTE):
                m.d.comb += self.write.eq(each & (e.closes | compress))
            with m.Case(Kind.DIVIDE):
                m.d.comb += self.write.eq(each & e.closes)
            with m.Case(Kind.IOTA, Kind.BITS, Kind.FIRST):
                m.d.comb += self.write.eq(each)
        return m

    def _into_mask(self, bits: Value) -> Value:
        """vd with new bits for elements that count."""
        return (self.old & ~self.elements) | (bits & self.elements)

    def _flags(self, m: Module, flags: Signal, size: Value, register: Value) -> None:
        """Comparisons of a register's elements, to where its bits are in a mask."""
        for log in range(3):
            count = 4 * self.lanes >> log
            with m.If(size == log), m.Switch(register):
                for n in range(8):
                    with m.Case(n):
                        m.d.sync += flags[n * count : (n + 1) * count].eq(self.flag[:: 1 << log])


def _first_bytes(size: Value, lanes: int) -> Value:
    """The bytes where elements begin."""
    return Mux(size == 2, Const(0b0001, 4), Mux(size == 1, Const(0b0101, 4), Const(0b1111, 4))).replicate(lanes)
