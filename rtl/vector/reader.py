"""The vector engine's way in: takes instructions, reads columns and sources, tells the lanes what they get."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.credit import Credit
from rtl.base.dispatch import COMMAND, OPCODE_BITS
from rtl.base.element_writer import WRITE
from rtl.base.fault import fault
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.limits import limit_ports
from rtl.base.memory_port import QUADRANTS, PsumReadSignature, SbufReadSignature, psum_word_bits, sbuf_word_bits
from rtl.base.pattern import PatternWalker, operand, partition_mask
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Opcode, block
from rtl.contract.memmap import Space
from rtl.contract.timing import STALLS, Engine
from rtl.vector.plan import PLAN, Plan

__all__ = ["ELEMENT", "MASK_BITS", "RESULTS", "ROLES", "Reader"]

RESULTS = 16  # beats read, and accumulators to come, that are not written
MASK_BITS = 192  # SHUFFLE
_FP32 = FORMATS["fp32"].code
_STALLS = STALLS[Engine.VECTOR]

ROLES = {"only": 0, "first": 1, "second": 2, "a": 3, "b": 4, "value": 5}
"""What a beat is to its instruction: of its one source (or of both), of the first or second of two, a column, one of
the values to look for."""

ELEMENT = data.StructLayout(
    {
        "valid": 1,
        "psum": 1,
        "place": 3,
        "place1": 3,
        "role": 3,
        "src": 4,
        "raw": 1,
        "turn": 2,
        "starts": 1,
        "ends": 1,
        "last": 1,
    }
)
"""What is known of a beat: its memory, its byte in the word (and that of the second source, read with it), role,
format, whether its bits pass, by how many quadrants of partitions it moves up, whether it is the first or last of its
group, the last of all."""


class Reader(wiring.Component):
    """Hands the destination of each instruction to `writer` and reads columns, then sources.

    `element` describes the data that are on the read ports in this cycle; `plan` is what they belong to, `partitions`
    its lanes, `mask` the one of SHUFFLE. `written` gives back a place among the results that may be on their way.
    `writing`: an earlier instruction has writes to make; `working`: the lanes are not done with one. `begins`: the
    cycle after an instruction was taken. `room`: the special units can take another element.
    A copy out of PSUM into SBUF follows another of its kind at once. Every other instruction is taken when all before
    it are done, so instructions of the queue see the results of those in front.
    A group of a reduction waits until the one before has left its unit: `release`.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                **limit_ports(cfg, "exp_rate_log2"),
                "command": In(stream.Signature(COMMAND)),
                "writer": Out(stream.Signature(WRITE)),
                "scales": Out(stream.Signature(WRITE)),
                "sbuf": Out(SbufReadSignature(cfg)),
                "psum": Out(PsumReadSignature(cfg)),
                "element": Out(ELEMENT),
                "plan": Out(PLAN),
                "partitions": Out(cfg.partitions),
                "mask": Out(MASK_BITS),
                "written": In(1),
                "writing": In(1),
                "working": In(1),
                "release": In(1),
                "room": In(1),
                "granted": Out(1),
                "begins": Out(1),
                "holds": Out(1),
                "busy": Out(1),
                "state": Out(4),
                "opcode": Out(OPCODE_BITS),  # of the instruction that it reads for
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        accept = Signal()
        m.submodules.walker0 = first = PatternWalker(self.cfg)
        m.submodules.walker1 = second = PatternWalker(self.cfg)
        m.submodules.decode = decode = Plan(self.cfg)
        m.d.comb += [
            decode.word.eq(self.command.payload.word),
            decode.limit_exp_rate_log2.eq(self.limit_exp_rate_log2),
        ]
        self._take(m, decode.plan, first, second, accept)

        plan = self.plan
        columns = Signal(2)  # still to be read
        values = Signal()  # the values to look for are
        later = Signal()  # of two sources, the second
        starts = Signal()
        odd = Signal()  # QUANTIZE_MX: the second column of a pair, which are one result
        waits = Signal()
        m.submodules.places = places = Credit(RESULTS, most=2)
        with m.If(accept):
            m.d.sync += [
                columns.eq(Cat(decode.plan.column_a, decode.plan.column_b)),
                values.eq(decode.plan.searches),
                starts.eq(1),
                waits.eq(0),
            ]

        # what is asked for in this cycle
        column = columns.any()
        main = ~column & ~values
        pairs = plan.two & ~plan.both
        which = Signal()
        ask = Signal()
        granted = Signal()
        ends = Signal()
        gives = Signal()  # a result
        address = Signal(first.bits)
        now = Signal(ELEMENT)
        reduces = plan.opcode == Opcode.TENSOR_REDUCE
        free = Mux(plan.special, self.room, places.count != 0)
        second_column = odd | fault("every column of MX elements takes a place among the results")
        m.d.comb += [
            which.eq(~column & (values | (pairs & (later ^ fault("the second source is read first"))))),
            ends.eq(first.ends.bit_select(Mux(reduces, plan.axes, 3), 1)),
            gives.eq(main & ~plan.special & (~pairs | later) & (~reduces | ends) & (~plan.quantizes | second_column)),
            address.eq(Mux(which, second.address, first.address)),
            ask.eq(first.valid & (column | (free & ~waits))),
            now.psum.eq(Mux(which, plan.psum1, plan.psum0)),
            now.src.eq(Mux(which, plan.src1, plan.src0)),
            now.turn.eq(Mux(which, plan.turn1, plan.turn0)),
            now.raw.eq(plan.raw & ((plan.opcode != Opcode.COPY_PREDICATED) | ~which)),
            now.role.eq(Mux(pairs, Mux(later, ROLES["second"], ROLES["first"]), ROLES["only"])),
            now.starts.eq(starts),
            now.ends.eq(ends),
            now.last.eq(first.last),
        ]
        with m.If(values):
            m.d.comb += now.role.eq(ROLES["value"])
        with m.If(column):
            m.d.comb += [
                address.eq(Mux(columns[0], plan.a, plan.b)),
                now.psum.eq(0),
                now.src.eq(_FP32),
                now.turn.eq(plan.turn0),
                now.role.eq(Mux(columns[0], ROLES["a"], ROLES["b"])),
                now.raw.eq(0),
            ]
        m.d.comb += [now.place.eq(address[:3]), now.place1.eq(second.address[:3])]
        self._ask(m, ask, now.psum, which, column, address, second.address, granted)
        m.d.comb += [
            first.step.eq(granted & main & (~pairs | later)),
            second.step.eq(granted & ~column & (values | plan.both | (pairs & later))),
        ]
        m.d.comb += [
            places.take.eq((granted & gives) + (accept & decode.plan.store)),
            places.give.eq(self.written & ~plan.special),
        ]
        m.d.sync += self.element.valid.eq(granted)
        with m.If(granted):
            m.d.sync += [
                *(self.element[name].eq(now[name]) for name, _ in ELEMENT if name not in ("valid", "place")),
                self.element.place.eq(
                    Mux(
                        fault("an element's place in the word is that of the vector engine's next request"),
                        first.next_address[:3],
                        now.place,
                    )
                ),
                columns.eq(columns & (columns - 1)),
            ]
            m.d.sync += odd.eq(plan.quantizes & ~odd)
            with m.If(main):
                held = reduces & ends & (~pairs | later) & ~fault("groups do not wait for the sums before them")
                m.d.sync += [later.eq(pairs & ~later), starts.eq(ends & (~pairs | later) | (starts & pairs & ~later))]
                m.d.sync += waits.eq(held)
            with m.If(~column & second.last):
                m.d.sync += values.eq(0)
        with m.If(self.release):
            m.d.sync += waits.eq(0)
        m.d.sync += self.begins.eq(accept)
        m.d.comb += self.granted.eq(granted & ~column)

        def stall(name: str) -> int:
            return 2 + _STALLS.index(name)

        # no place: the destination does not take results
        refused = Mux(Mux(places.count != 0, now.psum, plan.to_psum), stall("psum"), stall("sbuf"))
        unit = ~column & (waits | (plan.special & ~self.room))
        why = Mux(first.valid, Mux(unit, stall("unit"), refused), stall("fill"))
        m.d.comb += [
            self.busy.eq(first.valid),
            self.holds.eq(first.valid | accept),
            self.state.eq(Mux(granted, 0, why)),
            self.opcode.eq(
                Mux(
                    fault("the counters are told the opcode of the instruction behind"),
                    self.command.payload.word.opcode,
                    plan.opcode,
                )
            ),
        ]
        return m

    def _take(self, m: Module, plan: data.View, first: PatternWalker, second: PatternWalker, accept: Signal) -> None:
        """When the next instruction is taken, and who is told."""
        word = self.command.payload.word
        target = operand(word, "dst")
        now = self.plan
        alike = ("src0", "dst", "bits", "width", "turn0")
        follows = Cat(
            *((op == Opcode.TENSOR_COPY) & p.psum0 & ~p.to_psum for op, p in ((now.opcode, now), (plan.opcode, plan))),
            *(now[name] == plan[name] for name in alike),
        ).all()
        clear = Signal()
        storing = Signal()  # the place of the accumulator is still to be told
        store_pattern = Signal(PATTERN_LAYOUT)
        written = Signal(PATTERN_LAYOUT)
        idle = ~(self.busy | self.writing | self.working | self.begins)
        m.d.comb += [
            clear.eq(follows | idle | fault("the vector engine's read of SBUF does not wait for the writes before it")),
            self.command.ready.eq(first.command.ready & self.writer.ready & clear & ~storing),
            accept.eq(self.command.valid & self.command.ready),
            first.command.valid.eq(accept),
            first.command.payload.eq(Mux(plan.reads, Value.cast(operand(word, "src0")), Value.cast(target))),
            first.width.eq(plan.width),
            second.command.valid.eq(accept & (plan.two | plan.searches)),
            second.command.payload.eq(operand(word, "src1")),
            second.width.eq(plan.width),
            self.writer.valid.eq(accept | storing),
            self.writer.payload.pattern.eq(Mux(storing, store_pattern, written)),
            self.writer.payload.width.eq(Mux(storing, 0, plan.width_out)),
            self.writer.payload.final.eq(storing | ~word.store),
        ]
        with m.If(storing & self.writer.ready):
            m.d.sync += storing.eq(0)
        # a column of four elements is written as one integer
        m.d.comb += [
            written.eq(target),
            self.scales.valid.eq(accept & plan.quantizes),
            self.scales.payload.pattern.eq(self._scales(word, target)),
            self.scales.payload.width.eq(2),
            self.scales.payload.final.eq(0),
        ]
        with m.If(plan.quantizes):
            narrow = target.dtype == FORMATS["e2m1"].code
            m.d.comb += written.dtype.eq(Mux(narrow, FORMATS["uint16"].code, FORMATS["uint32"].code))
        with m.If(accept):
            m.d.sync += [
                now.eq(plan),
                self.partitions.eq(partition_mask(target.partition_start, target.partition_count, self.cfg.partitions)),
                self.mask.eq(Cat(word.imm0, word.imm1, word.imm2)),
                storing.eq(word.store),
                store_pattern.eq(self._column(word, target)),
            ]

    def _ask(
        self,
        m: Module,
        ask: Value,
        psum: Value,
        which: Value,
        column: Value,
        address: Value,
        other: Value,
        granted: Signal,
    ) -> None:
        """Requests to the memories. Of two sources read at once the first is at `address`, the second at `other`."""
        cfg, plan = self.cfg, self.plan
        word = self.command.payload.word
        fills = ~plan.reads & ~column
        both = plan.both & ~column
        size = cfg.partitions // QUADRANTS
        touched = [Signal(QUADRANTS, name=f"quadrants{i}") for i in range(2)]
        with m.If(self.command.valid & self.command.ready):
            for i, name in enumerate(("src0", "src1")):
                source = operand(word, name)
                if i == 0:
                    fills_next = word.opcode == Opcode.MEMSET
                    source = data.View(
                        source.shape(), Mux(fills_next, Value.cast(operand(word, "dst")), Value.cast(source))
                    )
                mask = partition_mask(source.partition_start, source.partition_count, cfg.partitions)
                m.d.sync += [touched[i][q].eq(mask[q * size : (q + 1) * size].any()) for q in range(QUADRANTS)]
        in_sbuf = Mux(psum & both, other, address)
        in_psum = Mux(~psum & both, other, address)
        m.d.comb += [
            self.sbuf.valid.eq(ask & ~fills & (both | ~psum)),
            self.sbuf.quadrants.eq(Mux(which | (both & psum), touched[1], touched[0])),
            self.psum.valid.eq(ask & ~fills & (both | psum)),
            self.psum.word.eq(in_psum[3:][: psum_word_bits(cfg)]),
            granted.eq(ask & (fills | ((self.sbuf.ready | ~self.sbuf.valid) & (self.psum.ready | ~self.psum.valid)))),
        ]
        m.d.comb += [self.sbuf.word[q].eq(in_sbuf[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]

    def _scales(self, word: data.View, target: data.View) -> Value:
        """The pattern of an MX operand's scales: a byte for each column, on the whole quadrants of its blocks."""
        q = block(self.cfg.partitions)
        start, count = target.partition_start, target.partition_count
        values: dict[str, Value] = {
            "offset": word.imm0[:24],
            "partition_start": start & ~(q - 1) & 0xFF,
            "partition_count": (count + (q - 1)) & ~(q - 1) & 0xFF,
            "space": Const(Space.SBUF, 4),
            "dtype": Const(FORMATS["uint8"].code, 4),
            "step0": Const(1, 16),
            "count0": target.count0,
        }
        rest = {name: Const(name.startswith("count"), field.width) for name, field in PATTERN_LAYOUT}
        return Cat(*((rest | values)[name][: PATTERN_LAYOUT[name].width] for name in rest))

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
