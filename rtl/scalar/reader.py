"""The scalar engine's way in: takes instructions, reads their columns, then asks for an element or a pair a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.credit import Credit
from rtl.base.dispatch import COMMAND, OPCODE_BITS
from rtl.base.element_writer import WRITE_WITH_TAIL
from rtl.base.fault import fault
from rtl.base.memory_port import QUADRANTS, PsumReadSignature, SbufReadSignature, psum_word_bits, sbuf_word_bits
from rtl.base.neighbours import is_small, neighbours_log2
from rtl.base.pattern import PatternWalker, operand, partition_mask
from rtl.contract.config import Config
from rtl.contract.isa import Opcode, Reduce
from rtl.contract.memmap import Space
from rtl.contract.timing import STALLS, Engine
from rtl.numeric.functions.activation import ActivationLane
from rtl.scalar.lanes import ELEMENT, JOB
from rtl.scalar.reducer import Reducer

__all__ = ["RESULTS", "Reader"]

RESULTS = 32  # elements read and not written; 18 keep one element a cycle going

_STALLS = STALLS[Engine.SCALAR]


class Reader(wiring.Component):
    """Hands the destination of each instruction to `writer` and reads its columns and its source.

    `element` describes the data that are on the read ports in this cycle. `written` gives back a place among the
    RESULTS that may be on their way. `writing`: an earlier instruction has writes to make; `reducing`: an
    accumulator, perhaps with a column, is not ready. LOAD_TABLE: `load` starts the loader with `load_partitions`;
    words are asked for while it has `room`, and `loaded` ends the instruction.
    An instruction that reads SBUF is taken when all writes before it are made, one that reads PSUM when those to
    PSUM are: so instructions of the queue see the results of those in front.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "command": In(stream.Signature(COMMAND)),
                "writer": Out(stream.Signature(WRITE_WITH_TAIL)),
                "sbuf": Out(SbufReadSignature(cfg)),
                "psum": Out(PsumReadSignature(cfg)),
                "element": Out(ELEMENT),
                "written": In(1),
                "writing": In(1),
                "reducing": In(1),
                "load": Out(1),
                "load_partitions": Out(8),
                "room": In(1),
                "loaded": In(1),
                "holds": Out(1),
                "busy": Out(1),
                "state": Out(4),
                "opcode": Out(OPCODE_BITS),  # of the instruction that it reads for
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.walker = walker = PatternWalker(cfg)
        word = self.command.payload.word
        source = operand(word, "src0")
        target = operand(word, "dst")

        job = Signal(JOB)
        coming = Signal(JOB)  # of the instruction that may be taken
        wanted = Signal(2)  # columns to read
        loading = Signal()
        running = Signal(OPCODE_BITS)
        ending = Signal(range(max(Reducer.GAP.values())))  # cycles until a reduction is through
        wrote_psum = Signal()
        to_psum = Signal()
        accept = Signal()
        m.d.comb += self.busy.eq(walker.valid | (ending != 0) | loading)
        m.d.comb += coming.eq(self._job(m, word, source, target))
        self._intake(m, walker, accept, job, coming, loading, ending, wrote_psum)

        quadrants = Signal(QUADRANTS)
        fresh = Signal(init=1)
        size = cfg.partitions // QUADRANTS
        touched = partition_mask(source.partition_start, source.partition_count, cfg.partitions)
        with m.If(accept):
            m.d.sync += [
                job.eq(coming),
                wanted.eq(Cat(word.column0, word.column1)),
                loading.eq(word.opcode == Opcode.LOAD_TABLE),
                running.eq(word.opcode),
                to_psum.eq(target.space == Space.PSUM),
            ]
            m.d.sync += [quadrants[q].eq(touched[q * size : (q + 1) * size].any()) for q in range(QUADRANTS)]
        with m.Elif(self.loaded):
            m.d.sync += loading.eq(0)
        with m.If(accept & (target.space == Space.PSUM)):
            m.d.sync += wrote_psum.eq(1)
        with m.Elif(~self.writing):
            m.d.sync += wrote_psum.eq(0)

        # a column, or an element; the last one of a stored reduction takes two places
        m.submodules.places = places = Credit(RESULTS, most=2)
        odd = Signal()
        column = Signal()
        fits = Signal()
        ask = Signal()
        address = Signal.like(walker.address)
        granted = Signal()
        stores = job.store & walker.last
        m.d.comb += [
            column.eq(wanted.any() & ~fault("columns of the scalar engine are not awaited")),
            fits.eq(
                Mux(
                    loading,
                    ~(odd | walker.last) | self.room | fault("words of a table are read before there is room"),
                    places.count > stores,
                )
            ),
            ask.eq(walker.valid & (column | fits)),
            address.eq(Mux(column, Mux(wanted[0], job.first.constant, job.second.constant), walker.address)),
            self.sbuf.valid.eq(ask & (column | ~job.psum)),
            self.sbuf.quadrants.eq(quadrants),
            self.psum.valid.eq(ask & ~column & job.psum),
            self.psum.word.eq(address[3:][: psum_word_bits(cfg)]),
            granted.eq((self.sbuf.valid & self.sbuf.ready) | (self.psum.valid & self.psum.ready)),
            walker.step.eq(granted & ~column),
        ]
        m.d.comb += [self.sbuf.word[q].eq(address[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        takes = walker.step & ~loading
        m.d.comb += [places.take.eq(Mux(takes, 1 + stores, 0)), places.give.eq(self.written)]
        m.d.sync += [
            self.element.job.eq(job),
            self.element.job.psum.eq(job.psum & ~column),
            self.element.place.eq(
                Mux(
                    fault("an element's place in the word is that of the scalar engine's next request"),
                    walker.next_address[:3],
                    address[:3],
                )
            ),
            self.element.valid.eq(takes),
            self.element.table.eq(walker.step & loading),
            self.element.column_a.eq(granted & column & wanted[0]),
            self.element.column_b.eq(granted & column & ~wanted[0]),
            self.element.first.eq(fresh),
            self.element.last.eq(walker.last),
        ]
        with m.If(granted & column):
            m.d.sync += wanted.eq(wanted & (wanted - 1))
        with m.If(walker.step):
            m.d.sync += [fresh.eq(walker.last), odd.eq(~odd & ~walker.last)]
        with m.If(
            takes
            & walker.last
            & (job.reduce != Reduce.IDLE)
            & ~fault("elements follow a reduction before it is through")
        ):
            m.d.sync += ending.eq(Mux(job.reduce == Reduce.RESET_REDUCE, Reducer.GAP[False], Reducer.GAP[True]) - 1)
        with m.Elif(ending != 0):
            m.d.sync += ending.eq(ending - 1)

        state = {name: 2 + _STALLS.index(name) for name in ("sbuf", "psum", "fill", "unit")}
        m.d.comb += [
            self.holds.eq(self.busy | accept),
            self.state.eq(state["fill"]),
            self.opcode.eq(
                Mux(
                    loading & fault("the counters take the load of a table for an activation"),
                    Opcode.ACTIVATION,
                    running,
                )
            ),
        ]
        with m.If(walker.step):
            m.d.comb += self.state.eq(0)
        with m.Elif(walker.valid & column):
            m.d.comb += self.state.eq(Mux(granted, state["fill"], state["sbuf"]))
        with m.Elif(walker.valid & fits):
            m.d.comb += self.state.eq(Mux(job.psum, state["psum"], state["sbuf"]))
        with m.Elif(walker.valid & ~loading):  # no place: the destination does not take the results
            m.d.comb += self.state.eq(Mux(to_psum, state["psum"], state["sbuf"]))
        with m.Elif(self.busy):
            m.d.comb += self.state.eq(state["unit"])
        return m

    def _intake(
        self,
        m: Module,
        walker: PatternWalker,
        accept: Signal,
        job: data.View,
        coming: data.View,
        loading: Signal,
        ending: Signal,
        wrote_psum: Signal,
    ) -> None:
        """When the next instruction is taken, and who is told."""
        word = self.command.payload.word
        source = operand(word, "src0")
        target = operand(word, "dst")
        from_psum = source.space == Space.PSUM
        columns = word.column0 | word.column1
        loads = word.opcode == Opcode.LOAD_TABLE
        # results of other instructions that are on their way take longer than a copy of bits
        shorter = (
            coming.bits & ~job.bits & ~fault("a copy of bits overtakes the results of the activation in front of it")
        )
        idle = Signal()
        clear = Signal()
        free = Signal()
        m.d.comb += [
            idle.eq(~(self.busy | self.writing) & ~(columns & self.reducing)),
            free.eq(
                from_psum
                & ~columns
                & ~shorter
                & (~wrote_psum | fault("the scalar engine's read of PSUM does not wait for the writes before it"))
            ),
            clear.eq(idle | free | fault("the scalar engine's read of SBUF does not wait for the writes before it")),
            self.command.ready.eq(
                walker.command.ready
                & ~loading
                & (ending == 0)
                & ~(walker.valid & (job.reduce != Reduce.IDLE))
                & (loads | self.writer.ready)
                & clear
            ),
            accept.eq(self.command.valid & self.command.ready),
            walker.command.valid.eq(accept),
            walker.command.payload.eq(source),
            walker.width.eq(coming.pairs),
            self.writer.valid.eq(accept & ~loads),
            self.writer.payload.pattern.eq(target),
            self.writer.payload.width.eq(coming.pairs),
            self.writer.payload.final.eq(1),
            self.writer.payload.tail.eq(word.store),
            self.writer.payload.tail_at.eq(word.imm2[: len(self.writer.payload.tail_at)]),
            self.load.eq(accept & loads),
            self.load_partitions.eq(source.partition_count),
        ]

    def _job(self, m: Module, word: data.View, source: data.View, target: data.View) -> Value:
        """JOB of an instruction."""
        shift = (self.cfg.partitions // QUADRANTS).bit_length() - 1
        turn = (target.partition_start >> shift) - (source.partition_start >> shift)
        of_function = word.opcode == Opcode.ACTIVATION
        side_by_side = neighbours_log2(m, source, "source", 1) & neighbours_log2(m, target, "target", 1)
        parts = {
            "psum": source.space == Space.PSUM,
            "src": source.dtype,
            "dst": target.dtype,
            "pairs": is_small(source)
            & is_small(target)
            & (side_by_side | fault("neighbours go in pairs from any byte on"))
            & (word.reduce == Reduce.IDLE),
            "bits": (word.opcode == Opcode.SCALAR_COPY) & (source.dtype == target.dtype),
            "turn": turn,
            "first": Cat(word.op0, word.reverse0, word.column0, word.imm0[:32]),
            "second": Cat(word.op1, word.reverse1, word.column1, word.imm1[:32]),
            # a NaN that only passes keeps its bits, as in the vector engine
            "func": Mux(
                of_function | fault("an affine instruction makes every NaN canonical"),
                word.imm2[32:38],
                ActivationLane.PASS,
            ),
            "slope": word.imm0[32:],
            "reduce": word.reduce,
            "reduce_op": word.imm2[40:46],
            "store": word.store,
            "start": target.partition_start,
            "count": target.partition_count,
        }
        return Cat(Value.cast(parts[name])[: field.width] for name, field in JOB)
