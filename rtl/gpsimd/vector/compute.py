"""Instructions of vectors that stay in registers: operands of each pass, what is made of them, and where it goes."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.gpsimd.vector.active import Active, bits_of, bytes_of
from rtl.gpsimd.vector.bits import MaskBits
from rtl.gpsimd.vector.lanes import vector_lanes
from rtl.gpsimd.vector.layouts import VECTOR, Kind, Source
from rtl.gpsimd.vector.operands import Operands
from rtl.gpsimd.vector.pass_reader import PassReader, begun
from rtl.gpsimd.vector.passes import PASS, Phase, distance_of
from rtl.gpsimd.vector.permute import Permute
from rtl.gpsimd.vector.ranks import Ranks
from rtl.gpsimd.vector.reduction import Reduction
from rtl.gpsimd.vector.write_back import WriteBack

__all__ = ["Compute"]

_OF_READER = ("ready", "wants_read", "wants_write", "has_read", "has_written", "first", "second", "third")
_WRITTEN = ("write", "write_number", "write_data", "write_mask")


class Compute(wiring.Component):
    """`start` with `ready`: an instruction begins, of which all that `begun` names is given.

    may, to_read, to_write, wants_read, wants_write, has_read, has_written: PassReader's; late: registers that passes
    which were taken have still to write. read: registers `first`, `second` and `third` are read, and their data are
    there in the next cycle, until the next read. write: bytes `write_mask` of register `write_number` become
    `write_data`. idle: nothing is under way. ends: an instruction is through, with `result` for rd. saturates:
    something has.
    Timing: PassReader's; what a pass makes is written two cycles after it was taken.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits = 32 * lanes
        super().__init__(
            {
                "start": In(1),
                "ready": Out(1),
                **{name: In(shape) for name, shape in begun(lanes).items()},
                "may": In(1),
                "to_read": In(32),
                "to_write": In(32),
                **{name: Out(32) for name in ("wants_read", "wants_write", "has_read", "has_written")},
                "late": Out(32),
                "idle": Out(1),
                "ends": Out(1),
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
        lanes = self.lanes
        bits, places = 32 * lanes, 4 * lanes
        element_bits = exact_log2(bits)
        m.submodules.reader = reader = PassReader(lanes)
        m.submodules.active = active = Active(lanes)
        m.submodules.lanes = unit = vector_lanes(lanes)
        m.submodules.permute = permute = Permute(lanes)
        m.submodules.logic = logic = MaskBits(lanes)
        m.submodules.ranks = ranks = Ranks(lanes)
        m.submodules.operands = values = Operands(lanes)
        m.submodules.reduction = reduction = Reduction(lanes)
        m.submodules.write_back = back = WriteBack(lanes)
        now, all_elements, taken = reader.held_now, reader.held_active, reader.taken
        e, e_valid, e_writes, goes = Signal(PASS), Signal(), Signal(32), Signal()
        m.d.comb += [
            reader.start.eq(self.start),
            *(getattr(reader, name).eq(getattr(self, name)) for name in (*begun(lanes), "may", "to_read", "to_write")),
            reader.goes.eq(goes),
            reader.behind.eq(e_valid | back.valid),
            *(getattr(self, name).eq(getattr(reader, name)) for name in _OF_READER),
            self.read.eq(taken),
            self.idle.eq(~reader.busy & ~e_valid & ~back.valid),
        ]

        # second cycle of a pass: its operands are there
        i, size, now_size, mode, beside = Signal(VECTOR), Signal(2), Signal(2), Signal(2), Signal(32)
        operands, kind = i.operands, i.kind
        permutes, reduces, divides_it = kind == Kind.PERMUTE, kind == Kind.REDUCE, kind == Kind.DIVIDE
        compress = permutes & (i.source == Source.COMPRESS)
        with m.If(goes):
            m.d.sync += e_valid.eq(taken)
        with m.If(taken):
            m.d.sync += [
                e.eq(reader.o),
                e_writes.eq(reader.writes),
                i.eq(reader.held_i),
                size.eq(reader.held_size),
                now_size.eq(now.size),
                mode.eq(now.vxrm),
                beside.eq(reader.held_scalar),
            ]
        m.d.comb += [
            goes.eq(~(e_valid & divides_it) | unit.divided[0]),
            active.load.eq(taken & reader.fresh),
            active.elements.eq(all_elements),
            active.carries.eq(reader.held_carries),
            active.next.eq(e_valid & goes & e.closes),
            active.size.eq(size),
            values.i.eq(i),
            values.now_size.eq(now_size),
            values.size.eq(size),
            values.part.eq(e.outer[:2]),
            values.scalar.eq(beside),
            values.first.eq(self.first_data),
            values.second.eq(self.second_data),
            values.third.eq(self.third_data),
            Value.cast(unit.lane).eq(i.lane),
            unit.clips.eq(operands.clips),
            unit.clips_signed.eq(operands.clips_signed),
            unit.step.eq(e.step),
            unit.divides.eq(e_valid & divides_it),
            unit.remainder.eq(i.bits[0]),
            unit.size.eq(size),
            unit.mode.eq(mode),
            unit.carry.eq(bytes_of(active.carry, size, lanes)),
            unit.a.eq(Mux(reduces & (e.phase == Phase.FOLD), reduction.folded, values.a)),
            unit.b.eq(Mux(reduces, reduction.total, values.b)),
            unit.c.eq(values.c),
        ]
        computed = Signal(places)
        m.d.comb += computed.eq(bytes_of(active.element, size, lanes))
        m.d.comb += [
            reduction.valid.eq(e_valid & reduces),
            reduction.phase.eq(e.phase),
            reduction.step.eq(e.inner),
            reduction.lane.eq(i.lane),
            reduction.size.eq(size),
            reduction.first.eq(self.second_data),
            reduction.computed.eq(computed),
            reduction.early.eq(unit.early),
        ]

        # masks
        takes = e_valid & goes
        m.d.comb += [
            logic.i.eq(i),
            logic.first.eq(self.first_data),
            logic.second.eq(self.second_data),
            logic.active.eq(all_elements),
            ranks.begin.eq(takes & (e.phase == Phase.FIRST)),
            ranks.next.eq(takes & e.closes),
            ranks.fills.eq(i.bits[0] & ~compress),
            ranks.mask.eq(Mux(compress, self.second_data, self.first_data) & all_elements),
            ranks.size.eq(size),
        ]

        # permutations, and what comes of an element of each word at a time
        m.d.comb += [
            permute.source.eq(i.source),
            permute.size.eq(size),
            permute.lmul.eq(now.lmul),
            permute.vl.eq(now.vl),
            permute.scalar.eq(beside),
            permute.distance.eq(distance_of(i.source, beside, element_bits)),
            permute.result_number.eq(e.number),
            permute.from_number.eq(e.from_number),
            permute.step.eq(e.step),
            permute.part.eq(e.outer),
            permute.first.eq(e.inner == 0),
            permute.indices.eq(self.second_data),
            permute.data.eq(self.first_data),
            permute.chosen.eq(ranks.chosen),
            permute.base.eq(ranks.base),
            permute.to.eq((ranks.register + e.inner)[:3]),
            *(own.eq(rank) for own, rank in zip(permute.ranks, ranks.counts, strict=True)),
        ]
        kept, kept_bytes = Signal(bits), Signal(places)
        collected, collected_bytes = Signal(bits), Signal(places)
        moved_data, moved_bytes = Signal(bits), Signal(places)
        m.d.comb += [
            moved_data.eq(Mux(divides_it, unit.quotient, permute.moved)),
            moved_bytes.eq(Mux(divides_it, permute.step_bytes.replicate(lanes), permute.bytes)),
        ]
        moved_bits = bits_of(m, moved_bytes, "moved")
        begins = e.begins | compress
        m.d.comb += [
            collected.eq((moved_data & moved_bits) | (kept & ~moved_bits)),
            collected_bytes.eq(moved_bytes | Mux(begins, 0, kept_bytes)),
        ]
        with m.If(takes & (e.phase == Phase.EACH)):
            m.d.sync += [kept.eq(collected), kept_bytes.eq(collected_bytes)]

        word = self.first_data[:32]
        half, byte = word[:16].as_signed(), word[:8].as_signed()
        made = Signal(bits)
        with m.Switch(kind):
            with m.Case(Kind.COUNT):
                m.d.comb += made.eq(logic.number)
            with m.Case(Kind.MOVE_OUT):
                m.d.comb += made.eq(Mux(size == 2, word, Mux(size == 1, half, byte))[:32])
            with m.Case(Kind.IOTA):
                m.d.comb += made.eq(ranks.ranks)
            with m.Default():
                m.d.comb += made.eq(collected)

        # third cycle
        m.d.comb += [
            back.take.eq(takes),
            back.e.eq(e),
            back.i.eq(i),
            back.size.eq(size),
            back.computed.eq(computed),
            back.narrow.eq(bytes_of(active.element, now_size, lanes)[: places // 2]),
            back.elements.eq(all_elements),
            back.number.eq(Mux(compress, permute.to, Mux(e.phase == Phase.LAST, 0, e.number))),
            back.made.eq(made),
            back.made_bytes.eq(collected_bytes),
            back.masks.eq(logic.result),
            back.total.eq(reduction.total),
            back.old.eq(self.third_data),
            back.result.eq(unit.result),
            back.flag.eq(unit.flag),
            back.saturates.eq(unit.saturates),
            self.result.eq(back.value),
            self.saturates.eq(back.saturated),
            self.ends.eq(back.ends),
            *(getattr(self, name).eq(getattr(back, name)) for name in _WRITTEN),
        ]
        written_late = Signal(32)
        with m.If(takes):
            m.d.sync += written_late.eq(e_writes)
        m.d.comb += self.late.eq(Mux(e_valid, e_writes, 0) | Mux(back.valid, written_late, 0))
        return m
