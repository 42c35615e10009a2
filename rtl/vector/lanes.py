"""The lanes: each partition's word goes to its quadrant and to the parts of its lane; results come back as words."""

from amaranth.hdl import Cat, DomainRenamer, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.memory_port import QUADRANTS
from rtl.base.pattern import size_log2
from rtl.base.placed import Repeated
from rtl.contract.config import Config
from rtl.contract.isa import Opcode, block
from rtl.contract.rule import IMMEDIATES
from rtl.vector.bits import copied_bits
from rtl.vector.lane import ENTERING, LANE_DOMAINS, SHARED, Lane
from rtl.vector.operators import OPERATION
from rtl.vector.plan import PLAN
from rtl.vector.quantize import QuantizeMx
from rtl.vector.reader import ELEMENT, MASK_BITS
from rtl.vector.shuffle import MASK_BITS as ENTRY_BITS
from rtl.vector.special import SpecialUnits
from rtl.vector.sums import SLOTS, SUMMING
from rtl.vector.timetable import CLOCKS, LEAVING, Timetable

__all__ = ["DOMAINS", "Lanes"]

_BESIDE = ("special", "quantize")
DOMAINS = tuple(f"vector_{name}" for name in _BESIDE)
"""Clock domains inside: the vector clock, standing still while an instruction does without what is on them."""

_SLOT, _RULE = IMMEDIATES["slot"][0], IMMEDIATES["rule"][0]


class Lanes(wiring.Component):
    """Words in, results out: `out` (64 bits a lane, the elements repeated over them) with `out_valid`, for `chosen`.

    `working`: something is in them. `release`: the reader may send the next group; `room`: the special units can take
    another element, and `written` tells them of a free place. `scales`, with `scales_valid`, for `scale_lanes`: what
    QUANTIZE_MX writes beside its elements. `clocks` has a bit for each of DOMAINS that needs edges.
    Faults of the special units are shown by their own bench.
    Timing, in cycles from the data of an element: bits 0, a copy 3, operators 5, exp 7, a sum 7.
    """

    def __init__(self, cfg: Config, results: int):
        self.cfg = cfg
        self.results = results
        wide = 64 * cfg.partitions
        super().__init__(
            {
                "element": In(ELEMENT),
                "plan": In(PLAN),
                "partitions": In(cfg.partitions),
                "mask": In(MASK_BITS),
                "begins": In(1),
                "sbuf": In(wide),
                "psum": In(wide),
                "granted": In(1),
                "written": In(1),
                "out": Out(wide),
                "chosen": Out(cfg.partitions),
                "out_valid": Out(1),
                "scales": Out(wide),
                "scale_lanes": Out(cfg.partitions),
                "scales_valid": Out(1),
                "working": Out(1),
                "release": Out(1),
                "room": Out(1),
                "clocks": Out(len(DOMAINS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg, plan = self.cfg, self.plan
        m.submodules.timetable = table = Timetable()
        m.submodules.special = special = DomainRenamer("vector_special")(SpecialUnits(cfg, self.results))
        m.submodules.quantize = quantize = DomainRenamer("vector_quantize")(QuantizeMx(cfg))
        words = self._turned(m, Mux(self.element.psum, self.psum, self.sbuf), self.element.turn, "turned")
        seconds = Signal.like(words)
        with m.If(plan.both):
            other = Mux(self.element.psum, self.sbuf, self.psum)
            m.d.comb += seconds.eq(self._turned(m, other, plan.turn1, "second"))
        leaving = [Signal(LEAVING, name=f"leaving{wide}") for wide in range(2)]
        operation = [Signal(OPERATION, name=f"operation{wide}") for wide in range(2)]
        summing = Signal(SUMMING)
        result = Signal(2)
        on = dict(zip(CLOCKS, table.clocks, strict=True))
        entering = self._entering(m, on)
        for wide, suffix in enumerate(("", "_wide")):
            with m.If(on[f"convert{suffix}"]):
                m.d.sync += leaving[wide].eq(table.leaving)
            with m.If(on[f"maths{suffix}"]):
                m.d.sync += operation[wide].eq(table.operation)
        with m.If(on["sums"]):
            m.d.sync += summing.eq(table.summing)
        with m.If(on["maths"]):
            m.d.sync += result.eq(table.result)

        shown = Signal(LEAVING)  # what the lanes show
        bytes_log2 = Signal(2)
        with m.If(on["convert"]):
            m.d.sync += shown.eq(leaving[0])
        m.d.comb += bytes_log2.eq(size_log2(m, shown.dst))
        rate = cfg.vector.exp_rate
        name = f"plexus_vector_lanes_{cfg.partitions}_{rate}"
        lanes = Repeated(name, lambda: Lane(rate), cfg.partitions, shared=SHARED, domains=LANE_DOMAINS, form="either")
        m.submodules.lanes = lanes
        m.d.comb += [
            *(getattr(lanes, f"enable_vector_{name}").eq(on[name]) for name in CLOCKS if name not in _BESIDE),
            lanes.word.eq(words),
            lanes.second.eq(seconds),
            lanes.both.eq(plan.both),
            *(Value.cast(lanes.entering[j]).eq(entering[j]) for j in range(SLOTS)),
            *(Value.cast(lanes.leaving[wide]).eq(leaving[wide]) for wide in range(2)),
            *(Value.cast(lanes.operation[wide]).eq(operation[wide]) for wide in range(2)),
            lanes.summing.eq(summing),
            lanes.result.eq(result),
            lanes.mine.eq(self.partitions),
            lanes.special.eq(special.out),
            lanes.bytes_log2.eq(bytes_log2),
            lanes.width.eq(shown.width),
            special.x.eq(lanes.value),
            special.a.eq(lanes.a),
        ]
        m.d.comb += [
            table.element.eq(self.element),
            table.plan.eq(plan),
            table.begins.eq(self.begins),
            table.special_out.eq(special.out_valid),
            special.start.eq(self.begins & plan.special),
            special.opcode.eq(plan.opcode),
            special.mask.eq(self.mask[: ENTRY_BITS * block(cfg.partitions)]),
            special.granted.eq(self.granted & plan.special),
            special.valid.eq(table.special_valid),
            special.values.eq(table.special_value),
            special.last.eq(table.special_last),
            special.written.eq(self.written & plan.special),
            self.room.eq(special.room),
            self.out.eq(Mux(plan.bits, self._bits(m, words), lanes.out)),
            self.out_valid.eq(Mux(plan.bits, self.element.valid, table.result_valid)),
            self.chosen.eq((1 << cfg.partitions) - 1),
            self.working.eq(table.working | (plan.special & special.busy) | (plan.quantizes & quantize.busy)),
            self.release.eq(table.release),
            self.clocks.eq(Cat(on[name] for name in _BESIDE)),
        ]
        with m.If(plan.opcode == Opcode.COPY_PREDICATED):
            m.d.comb += self.chosen.eq(lanes.chosen)
        with m.If(plan.special):
            m.d.comb += self.chosen.eq(special.touched)
        with m.If(plan.quantizes):
            m.d.comb += [self.out.eq(quantize.out), self.out_valid.eq(quantize.out_valid)]
        m.d.comb += [
            quantize.valid.eq(self.element.valid & plan.quantizes),
            quantize.words.eq(words),
            quantize.src.eq(plan.src0),
            quantize.dst.eq(plan.dst),
            quantize.slot.eq(plan.a[_SLOT : _SLOT + 2]),
            quantize.rule.eq(plan.a[_RULE]),
            quantize.partitions.eq(self.partitions),
            self.scales.eq(quantize.scales),
            self.scale_lanes.eq(quantize.scale_lanes),
            self.scales_valid.eq(quantize.scales_valid),
        ]
        return m

    def _entering(self, m: Module, on: dict[str, Value]) -> list[data.View]:
        """Where each slot finds its element in its word, in the cycle after the data."""
        element, plan = self.element, self.plan
        size = size_log2(m, element.src)
        slots: list[data.View] = []
        for j in range(SLOTS):
            slot = Signal(ENTERING, name=f"entering{j}")
            at = Signal(3, name=f"at{j}")
            m.d.comb += at.eq(element.place + (j << size))
            src, raw = element.src, element.raw
            if j == 0:
                m.d.comb += at.eq(
                    Mux(fault("a single byte is taken from the wrong place"), element.place & 6, element.place)
                )
            if j == 1:
                at = Mux(plan.both, element.place1, at)
                src = Mux(plan.both, plan.src1, src)
                raw = raw & ~(plan.both & (plan.opcode == Opcode.COPY_PREDICATED))
            with m.If(on["convert_wide" if j else "convert"]):
                m.d.sync += [slot.at.eq(at), slot.src.eq(src), slot.raw.eq(raw)]
            slots.append(slot)
        return slots

    def _turned(self, m: Module, words: Value, turn: Value, name: str) -> Signal:
        """Partitions that move up by quadrants."""
        turned = Signal(len(self.sbuf), name=name)
        share = len(turned) // QUADRANTS
        with m.Switch(Mux(fault("quadrants are not rotated in the vector engine"), 0, turn)):
            for quadrants in range(QUADRANTS):
                with m.Case(quadrants):
                    m.d.comb += turned.eq(words.rotate_left(quadrants * share))
        return turned

    def _bits(self, m: Module, words: Value) -> Value:
        """The elements of a copy of bits, repeated over each word."""
        plan = self.plan
        m.submodules.bits = bits = copied_bits(self.cfg.partitions)
        m.d.comb += [
            bits.enable.eq(plan.bits),
            bits.place.eq(self.element.place),
            bits.bytes_log2.eq(size_log2(m, plan.dst) + plan.width),
            bits.word.eq(words),
        ]
        return bits.out
