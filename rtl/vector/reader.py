"""The vector engine's way in: takes instructions, reads columns and sources, tells the lanes when to do what."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import COMMAND
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, PsumReadSignature, SbufReadSignature, psum_word_bits, sbuf_word_bits
from rtl.base.pattern import PatternWalker, operand, partition_mask
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Opcode
from rtl.contract.memmap import Space
from rtl.contract.timing import STALLS, Engine

__all__ = ["ELEMENT", "INSTRUCTION", "RESULTS", "ROLES", "TARGET", "Reader"]

RESULTS = 16  # elements read, and accumulators to come, that are not written
_FP32 = FORMATS["fp32"].code
_STALLS = STALLS[Engine.VECTOR]

ROLES = {"only": 0, "first": 1, "second": 2, "a": 3, "b": 4}
"""What an element is to its instruction: its one source, the first or second of two, a column."""

ELEMENT = data.StructLayout(
    {"valid": 1, "psum": 1, "place": 3, "role": 3, "src": 4, "turn": 2, "starts": 1, "ends": 1, "dst": 4, "raw": 1}
)
"""What is known of an element: its memory, its byte in the word, its role, its format, by how many quadrants of
partitions it moves up, whether it is the first or last of its group, the format it will have, whether its bits pass."""

INSTRUCTION = data.StructLayout(
    {
        "opcode": 8,
        "op0": 6,
        "op1": 6,
        "reverse0": 1,
        "reverse1": 1,
        "reduce": 2,
        "store": 1,
        "negate": 1,
        "a": 32,
        "b": 32,
        "column_a": 1,
        "column_b": 1,
        "dst": 4,
        "raw": 1,
    }
)
"""What the lanes need to know of the instruction that is in them."""

TARGET = data.StructLayout({"pattern": PATTERN_LAYOUT, "final": 1})
"""What the writer is told: where results go, and whether the instruction ends with them."""


class Reader(wiring.Component):
    """Hands the destination of each instruction to `writer` and reads columns, then sources.

    `element` describes the data that are on the read ports in this cycle; `instruction` is what they belong to,
    `partitions` its lanes. `written` gives back a place among the results that may be on their way. `writing`: an
    earlier instruction has writes to make; `working`: the lanes are not done with one. `begins`: the cycle after an
    instruction was taken.
    A copy out of PSUM follows another at once. Every other instruction is taken when all before it are done, so
    instructions of the queue see the results of those in front.
    A group of a reduction, and an element of a reciprocal, waits until the one before has left its unit: `release`.
    """

    FAULTS = {
        **PatternWalker.FAULTS,
        71: "a read of SBUF does not wait for the writes before it",
        72: "the element's place in the word is that of the next request",
        73: "the second source is read first",
        74: "groups do not wait for the sums before them",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "command": In(stream.Signature(COMMAND)),
                "writer": Out(stream.Signature(TARGET)),
                "sbuf": Out(SbufReadSignature(cfg)),
                "psum": Out(PsumReadSignature(cfg)),
                "element": Out(ELEMENT),
                "instruction": Out(INSTRUCTION),
                "partitions": Out(cfg.partitions),
                "written": In(1),
                "writing": In(1),
                "working": In(1),
                "release": In(1),
                "begins": Out(1),
                "holds": Out(1),
                "busy": Out(1),
                "state": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        walkers = [PatternWalker(cfg, plant=self.plant), PatternWalker(cfg)]
        m.submodules.walker0, m.submodules.walker1 = walkers
        word = self.command.payload.word
        sources = [operand(word, "src0"), operand(word, "src1")]
        target = operand(word, "dst")
        plain = word.opcode == Opcode.TENSOR_COPY
        both = (word.opcode == Opcode.TENSOR_TENSOR) | (word.opcode == Opcode.SCALAR_TENSOR_TENSOR)

        clear = Signal()
        accept = Signal()
        flowing = Signal()  # what is under way is a copy out of PSUM
        storing = Signal()  # the place of the accumulator is still to be told
        idle = ~(self.busy | self.writing | self.working)
        from_psum = plain & (sources[0].space == Space.PSUM)
        m.d.comb += [
            clear.eq((from_psum & flowing) | idle | planted(self.plant, 71)),
            self.command.ready.eq(walkers[0].command.ready & self.writer.ready & clear & ~storing),
            accept.eq(self.command.valid & self.command.ready),
        ]
        store_pattern = Signal(PATTERN_LAYOUT)
        for walker, source, wanted in zip(walkers, sources, (1, both), strict=True):
            m.d.comb += [walker.command.valid.eq(accept & wanted), walker.command.payload.eq(source)]
        m.d.comb += [
            self.writer.valid.eq(accept | storing),
            self.writer.payload.pattern.eq(Mux(storing, store_pattern, target)),
            self.writer.payload.final.eq(storing | ~word.store),
        ]
        with m.If(storing & self.writer.ready):
            m.d.sync += storing.eq(0)

        current = self.instruction
        two = Signal()
        axes = Signal(3)
        spaces = [Signal(name=f"psum{i}") for i in range(2)]
        formats = [Signal(4, name=f"format{i}") for i in range(2)]
        turns = [Signal(2, name=f"turn{i}") for i in range(2)]
        touched = [Signal(QUADRANTS, name=f"quadrants{i}") for i in range(2)]
        size = cfg.partitions // QUADRANTS
        shift = size.bit_length() - 1
        columns = Signal(2)  # still to be read
        starts = Signal()
        waits = Signal()
        with m.If(accept):
            m.d.sync += [
                current.opcode.eq(word.opcode),
                *(current[name].eq(word[name]) for name in ("op0", "op1", "reverse0", "reverse1")),
                *(current[name].eq(word[name]) for name in ("reduce", "store", "negate")),
                current.a.eq(word.imm0),
                current.b.eq(word.imm1),
                current.column_a.eq(word.column0),
                current.column_b.eq(word.column1),
                current.dst.eq(target.dtype),
                current.raw.eq((plain & (sources[0].dtype == target.dtype)) | word.op0[5] | word.op1[5]),
                self.partitions.eq(partition_mask(target.partition_start, target.partition_count, cfg.partitions)),
                two.eq(both),
                axes.eq(Mux(word.opcode == Opcode.TENSOR_REDUCE, word.axes, 3)),
                columns.eq(Cat(word.column0, word.column1)),
                flowing.eq(from_psum),
                storing.eq(word.store),
                starts.eq(1),
                waits.eq(0),
                store_pattern.eq(self._column(word, target)),
            ]
            for i, source in enumerate(sources):
                mask = partition_mask(source.partition_start, source.partition_count, cfg.partitions)
                m.d.sync += [
                    spaces[i].eq(source.space == Space.PSUM),
                    formats[i].eq(source.dtype),
                    turns[i].eq((target.partition_start >> shift) - (source.partition_start >> shift)),
                    *(touched[i][q].eq(mask[q * size : (q + 1) * size].any()) for q in range(QUADRANTS)),
                ]

        # what is asked for in this cycle
        places = Signal(range(RESULTS + 1), init=RESULTS)
        second = Signal()  # of two sources, the second
        which = Signal()
        ask = Signal()
        granted = Signal()
        ends = Signal()
        gives = Signal()  # a result
        column = columns.any()
        address = Signal(walkers[0].bits)
        now = Signal(ELEMENT)
        sums = (current.opcode == Opcode.TENSOR_REDUCE) | (current.opcode == Opcode.EXP)
        single = current.opcode == Opcode.RECIPROCAL
        m.d.comb += [
            which.eq(second ^ (two & planted(self.plant, 73))),
            ends.eq(walkers[0].ends.bit_select(axes[:2], 1) | single),
            gives.eq(~column & (~two | second) & ((current.opcode != Opcode.TENSOR_REDUCE) | ends)),
            address.eq(Mux(which, walkers[1].address, walkers[0].address)),
            ask.eq(walkers[0].valid & (places != 0) & ~waits),
            now.psum.eq(Mux(which, spaces[1], spaces[0])),
            now.src.eq(Mux(which, formats[1], formats[0])),
            now.turn.eq(Mux(which, turns[1], turns[0])),
            now.role.eq(Mux(two, Mux(second, ROLES["second"], ROLES["first"]), ROLES["only"])),
            now.starts.eq(starts),
            now.ends.eq(ends),
            now.dst.eq(current.dst),
            now.raw.eq(current.raw),
        ]
        with m.If(column):
            m.d.comb += [
                address.eq(Mux(columns[0], current.a, current.b)),
                now.psum.eq(0),
                now.src.eq(_FP32),
                now.turn.eq(turns[0]),
                now.role.eq(Mux(columns[0], ROLES["a"], ROLES["b"])),
                now.raw.eq(0),
            ]
        m.d.comb += [
            now.place.eq(address[:3]),
            self.sbuf.valid.eq(ask & ~now.psum),
            self.sbuf.quadrants.eq(Mux(which & ~column, touched[1], touched[0])),
            self.psum.valid.eq(ask & now.psum),
            self.psum.word.eq(address[3:][: psum_word_bits(cfg)]),
            granted.eq((self.sbuf.valid & self.sbuf.ready) | (self.psum.valid & self.psum.ready)),
            now.valid.eq(granted),
            walkers[0].step.eq(granted & ~column & (~two | second)),
            walkers[1].step.eq(granted & ~column & second),
        ]
        m.d.comb += [self.sbuf.word[q].eq(address[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        m.d.sync += [places.eq(places - (granted & gives) - (accept & word.store) + self.written), self.element.eq(now)]
        with m.If(planted(self.plant, 72)):
            m.d.sync += self.element.place.eq(walkers[0].next_address[:3])
        with m.If(granted):
            m.d.sync += columns.eq(columns & (columns - 1))
            with m.If(~column):
                m.d.sync += [second.eq(two & ~second), starts.eq(ends)]
                held = (sums | single) & (current.opcode != Opcode.EXP) & ends & ~planted(self.plant, 74)
                m.d.sync += waits.eq(held)
        with m.If(self.release):
            m.d.sync += waits.eq(0)
        m.d.sync += self.begins.eq(accept)
        self._tell(m, walkers[0], accept, granted, waits, places, now.psum)
        return m

    def _column(self, word: data.View, target: data.View) -> Value:
        """The pattern of the accumulator's place: a column of FP32 beside the destination."""
        pattern = Signal(PATTERN_LAYOUT)
        return Cat(
            *(
                {
                    "offset": word.imm2[:24],
                    "partition_start": target.partition_start,
                    "partition_count": target.partition_count,
                    "space": Const(Space.SBUF, 4),
                    "dtype": Const(_FP32, 4),
                }.get(name, Const(1 if name.startswith("count") else 0, field.width))
                for name, field in pattern.shape()
            )
        )

    def _tell(
        self, m: Module, walker: PatternWalker, accept: Value, granted: Value, waits: Value, places: Value, now: Value
    ) -> None:
        """Status: what happened at this edge, or why nothing did."""

        def stall(name: str) -> int:
            return 2 + _STALLS.index(name)

        refused = Mux(now & (places != 0), stall("psum"), stall("sbuf"))  # no place: SBUF does not take results
        why = Mux(walker.valid, Mux(waits, stall("unit"), refused), stall("fill"))
        m.d.comb += [
            self.busy.eq(walker.valid),
            self.holds.eq(walker.valid | accept),
            self.state.eq(Mux(granted, 0, why)),
        ]


