"""The lanes of the scalar engine: pick each partition's element, move it to its quadrant, and what goes with it."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.delay import delayed
from rtl.base.fault import fault
from rtl.base.memory_port import QUADRANTS
from rtl.base.pattern import partition_mask, size_log2
from rtl.base.pick import pick
from rtl.base.placed import Repeated
from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.config import Config
from rtl.numeric.functions.activation_table import LOAD
from rtl.scalar.lane import LANE_DOMAINS, SHARED, Lane
from rtl.scalar.reducer import REDUCED, Reducer
from rtl.scalar.slot import OPERATION
from rtl.scalar.tables import Tables

__all__ = ["ELEMENT", "JOB", "Lanes"]

JOB = data.StructLayout(
    {
        "psum": 1,
        "src": 4,
        "dst": 4,
        "pairs": 1,  # two elements at once, both sides in SBUF with 16 or 8 bits
        "bits": 1,  # a copy of bits: nothing is computed
        "turn": 2,  # quadrants of partitions that an element moves up
        "first": OPERATION,
        "second": OPERATION,
        "func": 6,
        "slope": 32,
        "reduce": 2,
        "reduce_op": 6,
        "store": 1,
        "start": 8,  # partitions of the destination
        "count": 8,
    }
)
"""What the lanes must know of an instruction."""

ELEMENT = data.StructLayout(
    {"valid": 1, "column_a": 1, "column_b": 1, "table": 1, "first": 1, "last": 1, "place": 3, "job": JOB}
)
"""What is on the read ports: a number or a pair, a column, or a piece of a table; its byte in the word."""


class Lanes(wiring.Component):
    """One element or pair of every partition a cycle. `out` is valid Lane.RESULT + 1 cycles after `element`, with it if
    that is a copy of bits, in front of which the lanes must be empty.

    `raw`: the elements as they were read, in the lanes of the destination. `store`: `out` is the accumulator,
    which goes to memory. `reducing`: the accumulator will change.
    """

    LATENCY = Lane.RESULT + 1

    def __init__(self, cfg: Config):
        self.cfg = cfg
        width = 32 * cfg.partitions
        super().__init__(
            {
                "element": In(ELEMENT),
                "sbuf": In(2 * width),
                "psum": In(2 * width),
                "load_valid": In(1),
                "load": In(LOAD),
                "raw": Out(width),
                "out": Out(width),
                "out_valid": Out(1),
                "store": Out(1),
                "reducing": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        element, job = self.element, self.element.job
        m.d.comb += self.raw.eq(self._picked(m))

        # what goes with an element, delayed to the stage that needs it
        first = delayed(m, Value.cast(job.first), 1, "first")
        second = delayed(m, Value.cast(job.second), 2, "second")
        func = Signal(6)
        slope = delayed(m, job.slope, Lane.FUNCTION, "slope")
        late = delayed(m, job.func, Lane.FUNCTION, "func")
        m.d.comb += func.eq(Mux(fault("the function is that of the instruction behind"), job.func, late))
        working = delayed(m, element.valid, Lane.FUNCTION, "working")
        dst = delayed(m, job.dst, Lane.RESULT, "dst")
        bits = Signal()  # the results are what was read
        m.d.comb += bits.eq(element.valid & job.bits)
        reduced = Signal(REDUCED)
        m.d.comb += [
            reduced.valid.eq(element.valid),
            reduced.first.eq(element.first),
            reduced.last.eq(element.last),
            reduced.reduce.eq(job.reduce),
            reduced.op.eq(job.reduce_op),
            reduced.store.eq(job.store),
            reduced.b.eq(job.second.constant),
            reduced.b_column.eq(job.second.column),
            reduced.start.eq(job.start),
            reduced.count.eq(job.count),
        ]
        m.submodules.reducer = reducer = Reducer()
        m.d.comb += [
            reducer.element.eq(delayed(m, reduced.as_value(), Lane.RESULT, "reduced")),
            self.reducing.eq(reducer.busy),
            self.store.eq(reducer.store),
            self.out_valid.eq(delayed(m, element.valid & ~job.bits, self.LATENCY, "valid") | bits | reducer.store),
        ]
        partitions = partition_mask(reducer.start, reducer.count, self.cfg.partitions)

        pairs = self._pairs(m)
        uses_table = working & (func >= FIRST_TABLE_FUNCTION)
        count = self.cfg.partitions
        m.submodules.lanes = lanes = Repeated(
            f"plexus_scalar_lanes_{count}", Lane, count, shared=SHARED, domains=LANE_DOMAINS, form="either"
        )
        for j, reads in enumerate((uses_table, uses_table & pairs[Lane.FUNCTION])):
            m.submodules[f"tables{j}"] = tables = Tables(self.cfg)
            m.d.comb += [
                tables.load_valid.eq(self.load_valid),
                tables.load.eq(self.load),
                tables.read_entry.eq(reads),
                tables.read_row.eq(delayed(m, reads, 1, f"uses_row{j}")),
                tables.entry_address.eq(getattr(lanes, f"entry_address{j}")),
                getattr(lanes, f"entry{j}").eq(tables.entry),
                tables.row_address.eq(getattr(lanes, f"row_address{j}")),
                getattr(lanes, f"row{j}").eq(tables.row),
            ]
        everyone = fault("the accumulator of partitions outside the instruction changes").replicate(count)
        m.d.comb += [
            lanes.enable_scalar_wide.eq(pairs.any()),
            lanes.x.eq(self.raw),
            lanes.src.eq(job.src),
            Value.cast(lanes.enters).eq(Cat(pairs[0], size_log2(m, job.src) == 0)),
            lanes.take_a.eq(element.column_a),
            lanes.take_b.eq(element.column_b),
            Value.cast(lanes.first).eq(first),
            Value.cast(lanes.second).eq(second),
            lanes.func.eq(func),
            lanes.slope.eq(slope),
            lanes.reduction.eq(reducer.beat),
            lanes.take_total.eq((partitions | everyone) & reducer.take.replicate(count)),
            lanes.dst.eq(dst),
            Value.cast(lanes.leaves).eq(delayed(m, Cat(pairs[Lane.RESULT], size_log2(m, dst) == 0), 1, "leaves")),
            self.out.eq(Mux(bits, self.raw, Mux(reducer.store, lanes.total, lanes.out))),
        ]
        return m

    def _pairs(self, m: Module) -> Value:
        """Bit n: a pair is in stage n, so the second slots need an edge."""
        now = Signal()
        before = Signal(Lane.RESULT)
        pairs = Cat(now, before)
        m.d.comb += now.eq(self.element.valid & self.element.job.pairs & ~self.element.job.bits)
        m.d.sync += before.eq(pairs)
        return Mux(fault("the second slots stop with the last pair that enters"), now.replicate(len(pairs)), pairs)

    def _picked(self, m: Module) -> Value:
        """Elements from their places in the words, then rotated; bits above an element are of no meaning."""
        width = 32 * self.cfg.partitions
        turned = Signal(width)
        place = self.element.place
        m.submodules.pick = picked = pick(self.cfg.partitions, 32)
        m.d.comb += [
            picked.enable.eq(1),
            picked.place.eq(Mux(fault("bytes are picked from their half word"), place & 6, place)),
            picked.word.eq(Mux(self.element.job.psum, self.psum, self.sbuf)),
        ]
        share = width // QUADRANTS
        with m.Switch(Mux(fault("quadrants are not rotated in the scalar engine"), 0, self.element.job.turn)):
            for turn in range(QUADRANTS):
                with m.Case(turn):
                    m.d.comb += turned.eq(picked.out.rotate_left(turn * share))
        return turned
