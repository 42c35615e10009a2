"""Instructions of vectors that stay in registers: operands of each pass, what is made of them, and where it goes."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.gpsimd.vector.active import Active, body, bytes_of, log_elements
from rtl.gpsimd.vector.bits import MaskBits, Prefix
from rtl.gpsimd.vector.configuration import setting
from rtl.gpsimd.vector.lanes import vector_lanes
from rtl.gpsimd.vector.layouts import VECTOR, Kind, Result, Second, Source
from rtl.gpsimd.vector.passes import PASS, Passes, Phase, distance_of
from rtl.gpsimd.vector.permute import Permute
from rtl.gpsimd.vector.spread import Spread

__all__ = ["Compute"]


class Compute(wiring.Component):
    """`start`: instruction `i`, legal, with x[rs1] `x`; kept until `done`, in that cycle if there is nothing to do.

    mask: v0. read: registers `first`, `second` and `third` are read, and their data are there in the next cycle, until
    the next read. write: bytes `write_mask` of register `write_number` become `write_data`. result: for rd, with
    `done`. saturates: something has.
    Timing: VectorUnit's.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits = 32 * lanes
        super().__init__(
            {
                "start": In(1),
                "i": In(VECTOR),
                "now": In(setting(lanes)),
                "x": In(32),
                "mask": In(bits),
                "busy": Out(1),
                "done": Out(1),
                "result": Out(32),
                "saturates": Out(1),
                "read": Out(1),
                "first": Out(5),
                "second": Out(5),
                "third": Out(5),
                "first_data": In(bits),
                "second_data": In(bits),
                "third_data": In(bits),
                "write": Out(1),
                "write_number": Out(5),
                "write_data": Out(bits),
                "write_mask": Out(4 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, i, now = self.lanes, self.i, self.now
        bits, places, log_bytes = 32 * lanes, 4 * lanes, exact_log2(4 * lanes)
        element_bits = exact_log2(bits)
        operands, kind = i.operands, i.kind
        m.submodules.passes = passes = Passes(lanes)
        m.submodules.active = active = Active(lanes)
        m.submodules.lanes = unit = vector_lanes(lanes)
        m.submodules.permute = permute = Permute(lanes)
        m.submodules.logic = logic = MaskBits(lanes)
        m.submodules.prefix = prefix = Prefix(lanes)
        m.submodules.first_spread = first_spread = Spread(lanes)
        m.submodules.second_spread = second_spread = Spread(lanes)
        permutes, reduces, divides_it = kind == Kind.PERMUTE, kind == Kind.REDUCE, kind == Kind.DIVIDE
        compress = permutes & (i.source == Source.COMPRESS)
        to_mask = i.mask_result & (kind == Kind.LANES)

        # for how many elements of which size
        doubled = (operands.widens_first | operands.widens_second | operands.narrows) & ~operands.swaps
        size, elements, scalar = Signal(2), Signal(element_bits + 1), Signal(32)
        all_elements = Signal(bits)  # that are computed
        begin, goes = Signal(), Signal()
        with m.If(i.is_whole):
            m.d.comb += [size.eq(0), elements.eq((i.whole + 1) << log_bytes)]
        with m.Else():
            m.d.comb += [size.eq(now.size + doubled), elements.eq(Mux(i.scalar_result, now.vl != 0, now.vl))]
        with m.Switch(i.second):
            with m.Case(Second.IMMEDIATE):
                m.d.comb += scalar.eq(i.vs1.as_signed())
            with m.Case(Second.UNSIGNED):
                m.d.comb += scalar.eq(i.vs1)
            with m.Default():
                m.d.comb += scalar.eq(self.x)
        elements_there = body(m, elements, "body")
        tail = fault("the tail of a vector is written")
        unmasked = ~i.masked | i.carry_in | fault("a mask of vectors is not looked at")
        m.d.comb += [
            all_elements.eq((elements_there | tail.replicate(bits)) & (self.mask | unmasked.replicate(bits))),
            begin.eq(self.start & ~self.busy),
            passes.begin.eq(begin),
            passes.go.eq(goes),
            passes.i.eq(i),
            passes.setting.eq(now),
            passes.elements.eq(elements),
            passes.size.eq(size),
            passes.distance.eq(distance_of(i.source, scalar, element_bits)),
            self.read.eq(passes.valid & goes),
            self.first.eq(passes.first),
            self.second.eq(passes.second),
            self.third.eq(passes.third),
        ]
        with m.If(begin & ~passes.empty):
            m.d.sync += self.busy.eq(1)

        # second cycle of a pass: its operands are there
        e, e_valid = Signal(PASS), Signal()
        each = e.phase == Phase.EACH
        splat = Signal(32)
        m.d.comb += splat.eq(
            Mux(now.size == 2, scalar, Mux(now.size == 1, scalar[:16].replicate(2), scalar[:8].replicate(4)))
        )
        a, b = first_spread.o, second_spread.o
        total = Signal(bits)  # of a reduction
        m.d.comb += [
            goes.eq(~(e_valid & divides_it) | unit.divided[0]),
            active.load.eq(~self.busy),
            active.elements.eq(all_elements),
            active.carries.eq(self.mask & i.masked.replicate(bits)),
            active.next.eq(e_valid & goes & e.closes),
            active.size.eq(size),
            first_spread.i.eq(self.first_data),
            first_spread.doubles.eq(operands.widens_first),
            first_spread.quarters.eq(operands.quarters),
            first_spread.part.eq(e.outer),
            first_spread.size.eq(size),
            first_spread.signed.eq(operands.signed_first),
            second_spread.i.eq(Mux(i.second == Second.VECTOR, self.second_data, splat.replicate(lanes))),
            second_spread.doubles.eq(operands.widens_second),
            second_spread.part.eq(e.outer),
            second_spread.size.eq(size),
            second_spread.signed.eq(operands.signed_second),
            Value.cast(unit.lane).eq(i.lane),
            unit.clips.eq(operands.clips),
            unit.clips_signed.eq(operands.clips_signed),
            unit.step.eq(e.step),
            unit.divides.eq(e_valid & divides_it),
            unit.remainder.eq(i.bits[0]),
            unit.size.eq(size),
            unit.mode.eq(now.vxrm),
            unit.carry.eq(bytes_of(active.carry, size, lanes)),
            unit.a.eq(Mux(operands.to_third, self.third_data, Mux(operands.swaps, b, a))),
            unit.b.eq(Mux(operands.swaps, a, b)),
            unit.c.eq(Mux(operands.to_third, a, self.third_data)),
        ]
        with m.If(goes):
            m.d.sync += [e_valid.eq(passes.valid), e.eq(passes.now)]
        computed = Signal(places)
        m.d.comb += computed.eq(bytes_of(active.element, size, lanes))
        with m.If(reduces):
            m.d.comb += unit.b.eq(total)
            with m.If(e.phase == Phase.FOLD):
                folded = [total >> (bits >> n + 1) for n in range(log_bytes)]
                with m.Switch(e.inner):
                    for n, value in enumerate(folded):
                        with m.Case(n):
                            m.d.comb += unit.a.eq(value)
        with m.If(e_valid & reduces):
            with m.Switch(e.phase):
                with m.Case(Phase.FIRST):
                    only = bytes_of(Const(1, bits), size, lanes)
                    only_bits = Cat(bit.replicate(8) for bit in only)
                    neutral = self._neutral(i, size).replicate(lanes)
                    m.d.sync += total.eq((self.second_data & only_bits) | (neutral & ~only_bits))
                with m.Case(Phase.EACH):
                    kept = Cat(bit.replicate(8) for bit in computed)
                    m.d.sync += total.eq((unit.early & kept) | (total & ~kept))
                with m.Case(Phase.FOLD):
                    m.d.sync += total.eq(unit.early)

        # masks
        ranked, base = Signal(bits), Signal(element_bits + 1)
        m.d.comb += [
            logic.i.eq(i),
            logic.first.eq(self.first_data),
            logic.second.eq(self.second_data),
            logic.active.eq(all_elements),
            prefix.bits.eq(ranked[:places]),
            prefix.size.eq(size),
        ]
        with m.If(e_valid & goes & (e.phase == Phase.FIRST)):
            with m.If(compress):
                m.d.sync += ranked.eq(self.second_data & all_elements)
            with m.Else():
                m.d.sync += ranked.eq(Mux(i.bits[0], -1, self.first_data & all_elements))
            m.d.sync += base.eq(0)
        with m.Elif(e_valid & goes & e.closes):
            of = [ranked >> (places >> n) for n in range(3)]
            fills = i.bits[0] & ~compress
            moved = Mux(size == 2, of[2], Mux(size == 1, of[1], of[0]))
            m.d.sync += [ranked.eq(moved | fills.replicate(bits)), base.eq(base + prefix.total)]
        iota = self._ranks(prefix, base, size)

        # permutations, and what comes of an element of each word at a time
        m.d.comb += [
            permute.source.eq(i.source),
            permute.size.eq(size),
            permute.lmul.eq(now.lmul),
            permute.vl.eq(now.vl),
            permute.scalar.eq(scalar),
            permute.distance.eq(distance_of(i.source, scalar, element_bits)),
            permute.result_number.eq(e.number),
            permute.from_number.eq(e.from_number),
            permute.step.eq(e.step),
            permute.part.eq(e.outer),
            permute.first.eq(e.inner == 0),
            permute.indices.eq(self.second_data),
            permute.data.eq(self.first_data),
            permute.chosen.eq(ranked[:places]),
            permute.base.eq(base),
            permute.to.eq((base >> log_elements(lanes, size)) + e.inner),
        ]
        for own, rank in zip(permute.ranks, prefix.counts, strict=True):
            m.d.comb += own.eq(rank)
        kept, kept_bytes = Signal(bits), Signal(places)
        collected, collected_bytes = Signal(bits), Signal(places)
        moved_data, moved_bytes = Signal(bits), Signal(places)
        m.d.comb += [
            moved_data.eq(Mux(divides_it, unit.quotient, permute.moved)),
            moved_bytes.eq(Mux(divides_it, permute.step_bytes.replicate(lanes), permute.bytes)),
        ]
        moved_bits = Cat(bit.replicate(8) for bit in moved_bytes)
        fresh = e.begins | compress
        m.d.comb += [
            collected.eq((moved_data & moved_bits) | (kept & ~moved_bits)),
            collected_bytes.eq(moved_bytes | Mux(fresh, 0, kept_bytes)),
        ]
        with m.If(e_valid & goes & each):
            m.d.sync += [kept.eq(collected), kept_bytes.eq(collected_bytes)]

        # third cycle: a register is written
        w, w_valid = Signal(PASS), Signal()
        w_bytes, w_first, w_data, w_number = Signal(places), Signal(places), Signal(bits), Signal(5)
        flags = Signal(bits)
        m.d.sync += w_valid.eq(e_valid & goes)
        narrow = bytes_of(active.element, now.size, lanes)[: places // 2]
        narrow_bytes = Mux(e.outer[0], Cat(Const(0, places // 2), narrow), narrow)
        to = (base >> log_elements(lanes, size))[:3]
        with m.If(goes):
            m.d.sync += [
                w.eq(e),
                w_first.eq(computed & self._firsts(size)),
                w_number.eq((i.vd + Mux(compress, to + e.inner, Mux(e.phase == Phase.LAST, 0, e.number)))[:5]),
                w_bytes.eq(Mux(operands.narrows, narrow_bytes, computed)),
            ]
        merged = (self.third_data & ~all_elements) | (logic.result & all_elements)
        word = self.first_data[:32]
        with m.Switch(kind):
            with m.Case(Kind.BITS, Kind.FIRST):
                m.d.sync += [w_data.eq(merged), w_bytes.eq(-1)]
            with m.Case(Kind.COUNT):
                m.d.sync += w_data.eq(logic.number)
            with m.Case(Kind.MOVE_OUT):
                half, byte = word[:16].as_signed(), word[:8].as_signed()
                m.d.sync += w_data.eq(Mux(size == 2, word, Mux(size == 1, half, byte))[:32])
            with m.Case(Kind.IOTA):
                m.d.sync += w_data.eq(iota)
            with m.Case(Kind.PERMUTE, Kind.DIVIDE):
                m.d.sync += w_data.eq(collected)
                m.d.sync += w_bytes.eq(Mux(compress, collected_bytes, collected_bytes & computed))
        narrowed = Cat(
            Mux(now.size == 0, Cat(lane[:8], lane[16:24]), lane[:16])
            for lane in (unit.result.word_select(n, 32) for n in range(lanes))
        )
        m.d.comb += [
            self.write_number.eq(w_number),
            self.write_data.eq(w_data),
            self.write_mask.eq(w_bytes),
            self.result.eq(w_data),
            self.saturates.eq(w_valid & (kind == Kind.LANES) & (w_first & unit.saturates).any()),
        ]
        with m.Switch(kind):
            with m.Case(Kind.LANES):
                m.d.comb += self.write.eq(w_valid & (~to_mask | (w.phase == Phase.LAST)))
                m.d.comb += self.write_data.eq(Mux(operands.narrows, Cat(narrowed, narrowed), unit.result))
                with m.If(to_mask):
                    m.d.comb += [
                        self.write_data.eq((self.third_data & ~all_elements) | (flags & all_elements)),
                        self.write_mask.eq(-1),
                    ]
            with m.Case(Kind.REDUCE):
                m.d.comb += [
                    self.write.eq(w_valid & (w.phase == Phase.LAST)),
                    self.write_data.eq(total),
                    self.write_mask.eq(bytes_of(Const(1, bits), size, lanes)),
                ]
            with m.Case(Kind.PERMUTE, Kind.DIVIDE):
                m.d.comb += self.write.eq(w_valid & (w.closes | compress) & (w.phase == Phase.EACH))
            with m.Case(Kind.IOTA):
                m.d.comb += self.write.eq(w_valid & (w.phase == Phase.EACH))
            with m.Case(Kind.BITS, Kind.FIRST):
                m.d.comb += self.write.eq(w_valid)
        with m.If(w_valid & to_mask & (w.phase == Phase.EACH)):
            self._flags(m, flags, w.outer, size, unit.flag)
        ended = Signal()
        m.d.comb += [ended.eq(w_valid & w.ends), self.done.eq(ended | (begin & passes.empty))]
        with m.If(ended):
            m.d.sync += self.busy.eq(0)
        return m

    def _neutral(self, i: Value, size: Value) -> Value:
        """32 bits of elements that change no result of the reduction."""
        least = i.lane.inverts  # of a minimum it is the largest number
        sign = Mux(size == 2, Const(1 << 31, 32), Mux(size == 1, Const(0x80008000, 32), Const(0x80808080, 32)))
        ends = least.replicate(32) ^ Mux(i.lane.signed, sign, 0)
        return Mux(i.lane.result == Result.PICK, ends, (i.lane.result == Result.AND).replicate(32))

    def _firsts(self, size: Value) -> Value:
        """The bytes where elements begin."""
        return Mux(size == 2, Const(0b0001, 4), Mux(size == 1, Const(0b0101, 4), Const(0b1111, 4))).replicate(
            self.lanes
        )

    def _ranks(self, prefix: Prefix, base: Value, size: Value) -> Value:
        """What viota gives for each element of a register."""
        values = [(rank + base) for rank in prefix.counts]
        whole = Cat(value[:8] for value in values)
        halves = Cat(value | Const(0, 16) for value in values[: 2 * self.lanes])
        words = Cat(value | Const(0, 32) for value in values[: self.lanes])
        return Mux(size == 2, words, Mux(size == 1, halves, whole))

    def _flags(self, m: Module, flags: Signal, register: Value, size: Value, flag: Value) -> None:
        """Comparisons of a register's elements, to where its bits are in a mask."""
        for log in range(3):
            count = 4 * self.lanes >> log
            with m.If(size == log), m.Switch(register):
                for n in range(8):
                    with m.Case(n):
                        m.d.sync += flags[n * count : (n + 1) * count].eq(flag[:: 1 << log])
