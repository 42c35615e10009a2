"""The scalar engine's way out: results wait for memory and are written along the destination pattern."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import (
    QUADRANTS,
    PsumWriteSignature,
    SbufWriteSignature,
    psum_word_bits,
    sbuf_word_bits,
)
from rtl.base.pattern import PatternWalker, partition_mask
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.memmap import Space

__all__ = ["DESTINATION", "RESULTS", "Writer"]

DESTINATION = data.StructLayout({"pattern": PATTERN_LAYOUT, "store": 1, "at": 24})
"""Where the results of an instruction go; with `store` its accumulator follows them, as FP32, to byte `at` of SBUF."""

RESULTS = 32  # elements read and not written; 18 keep one element a cycle going
_PATTERNS = 4  # instructions shorter than the pipeline may follow each other


class Writer(wiring.Component):
    """Writes `result` (with `result_valid`, never refused: the reader counts places) element by element.

    `written` in each cycle in which a memory takes an element; `done` with the last one of an instruction.
    `busy`: an instruction has writes to make.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "command": In(stream.Signature(DESTINATION)),
                "result": In(32 * cfg.partitions),
                "result_valid": In(1),
                "sbuf": Out(SbufWriteSignature(cfg)),
                "psum": Out(PsumWriteSignature(cfg)),
                "written": Out(1),
                "done": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.patterns = patterns = Fifo(DESTINATION, _PATTERNS)
        m.submodules.walker = walker = PatternWalker(cfg)
        m.submodules.results = results = Memory(shape=32 * cfg.partitions, depth=RESULTS, init=[])
        connect(m, flipped(self.command), patterns.i)

        pattern = patterns.o.payload.pattern
        size_log2 = Signal(2)
        to_psum = Signal()
        store = Signal()
        storing = Signal()  # the elements are written, the accumulator is not
        at = Signal(24)
        quadrants = Signal(QUADRANTS)
        partitions = Signal(cfg.partitions)
        size = cfg.partitions // QUADRANTS
        mask = partition_mask(pattern.partition_start, pattern.partition_count, cfg.partitions)
        m.d.comb += [
            walker.command.payload.eq(pattern),
            walker.command.valid.eq(patterns.o.valid & ~store),
            patterns.o.ready.eq(walker.command.ready & ~store),
        ]
        with m.If(patterns.o.valid & patterns.o.ready):
            m.d.sync += [
                to_psum.eq(pattern.space == Space.PSUM),
                partitions.eq(Mux(fault("the scalar engine writes partitions outside the destination too"), ~0, mask)),
                store.eq(patterns.o.payload.store),
                at.eq(patterns.o.payload.at),
            ]
            m.d.sync += [quadrants[q].eq(mask[q * size : (q + 1) * size].any()) for q in range(QUADRANTS)]
            with m.Switch(pattern.dtype):
                for fmt in FORMATS.values():
                    with m.Case(fmt.code):
                        m.d.sync += size_log2.eq({1: 0, 2: 1, 4: 2}.get(fmt.bytes, 0))

        w_at = Signal(range(RESULTS))
        r_at = Signal(range(RESULTS))
        stored = Signal(range(RESULTS + 1))
        w_port = results.write_port()
        r_port = results.read_port(domain="comb")
        asks = Signal()
        asks_psum = Signal()
        last = Signal()
        m.d.comb += [
            w_port.en.eq(self.result_valid),
            w_port.addr.eq(w_at),
            w_port.data.eq(self.result),
            r_port.addr.eq(r_at),
            asks.eq((walker.valid | storing) & (stored != 0)),
            asks_psum.eq(to_psum & ~storing),
            self.sbuf.valid.eq(asks & ~asks_psum),
            self.psum.valid.eq(asks & asks_psum),
            self.written.eq(asks & Mux(asks_psum, self.psum.ready, self.sbuf.ready)),
            walker.step.eq(self.written & ~storing),
            last.eq(storing | (walker.last & ~store)),
            self.done.eq(
                (
                    self.written
                    | (asks & fault("the scalar engine's done does not wait for the memory to take the last element"))
                )
                & last
            ),
            self.busy.eq(walker.valid | storing | patterns.o.valid),
        ]
        m.d.sync += stored.eq(stored + self.result_valid - self.written)
        with m.If(self.result_valid):
            m.d.sync += w_at.eq(w_at + 1)
        with m.If(self.written):
            m.d.sync += r_at.eq(r_at + 1)
            with m.If(storing):
                m.d.sync += [storing.eq(0), store.eq(0)]
            with m.Elif(walker.last):
                m.d.sync += storing.eq(store)

        address = Signal.like(walker.address)
        wide = Signal(2)  # of the element
        lanes = Signal(8)
        neighbour = fault("an element is written over its neighbour as well")
        m.d.comb += [
            address.eq(Mux(storing & ~fault("the accumulator goes where the last element went"), at, walker.address)),
            wide.eq(Mux(storing, 2, size_log2)),
        ]
        with m.Switch(wide):
            with m.Case(0):
                m.d.comb += lanes.eq(Mux(neighbour, 3 << (address[:3] & 6), 1 << address[:3]))
            with m.Case(1):
                m.d.comb += lanes.eq(3 << (address[:3] & 6))
            with m.Default():
                m.d.comb += lanes.eq(Mux(address[2], 0xF0, 0x0F))
        words = Signal(64 * cfg.partitions)
        for p in range(cfg.partitions):
            x = r_port.data[32 * p : 32 * p + 32]
            upper = Mux(wide == 2, x[16:], Mux(wide == 1, x[:16], Cat(x[:8], x[:8])))
            lower = Mux(wide == 0, Cat(x[:8], x[:8]), x[:16])
            m.d.comb += words[64 * p : 64 * p + 64].eq(Cat(lower, upper, lower, upper))
        for port in (self.sbuf, self.psum):
            m.d.comb += [port.partitions.eq(partitions), port.bytes.eq(lanes), port.data.eq(words)]
        m.d.comb += [
            self.sbuf.quadrants.eq(quadrants),
            self.psum.word.eq(address[3:][: psum_word_bits(cfg)]),
        ]
        m.d.comb += [self.sbuf.word[q].eq(address[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        return m
