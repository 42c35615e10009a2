"""The vector engine's way out: results wait for SBUF and are written along the destination pattern."""

from amaranth.hdl import Cat, Module, Mux, Signal, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fifo import Fifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, SbufWriteSignature, sbuf_word_bits
from rtl.base.pattern import PatternWalker, partition_mask
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.vector.reader import RESULTS

__all__ = ["Writer"]

_PATTERNS = 4  # instructions shorter than the pipeline may follow each other


class Writer(wiring.Component):
    """Writes `result` (with `result_valid`, never refused: the reader counts places) element by element.

    `written` in each cycle in which SBUF takes an element; `done` with the last one of an instruction.
    `busy`: an instruction has writes to make.
    """

    FAULTS = {
        91: "a 16-bit element is written over its neighbour as well",
        92: "done does not wait for SBUF to take the last element",
        93: "partitions outside the destination are written too",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "command": In(stream.Signature(PATTERN_LAYOUT)),
                "result": In(32 * cfg.partitions),
                "result_valid": In(1),
                "sbuf": Out(SbufWriteSignature(cfg)),
                "written": Out(1),
                "done": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.patterns = patterns = Fifo(PATTERN_LAYOUT, _PATTERNS)
        m.submodules.walker = walker = PatternWalker(cfg, plant=self.plant)
        m.submodules.results = results = Memory(shape=32 * cfg.partitions, depth=RESULTS, init=[])
        connect(m, flipped(self.command), patterns.i)
        connect(m, patterns.o, walker.command)

        pattern = patterns.o.payload
        single = Signal()  # 32-bit elements
        quadrants = Signal(QUADRANTS)
        partitions = Signal(cfg.partitions)
        size = cfg.partitions // QUADRANTS
        mask = partition_mask(pattern.partition_start, pattern.partition_count, cfg.partitions)
        with m.If(walker.command.valid & walker.command.ready):
            m.d.sync += [
                single.eq(pattern.dtype == FORMATS["fp32"].code),
                partitions.eq(Mux(planted(self.plant, 93), ~0, mask)),
            ]
            m.d.sync += [quadrants[q].eq(mask[q * size : (q + 1) * size].any()) for q in range(QUADRANTS)]

        w_at = Signal(range(RESULTS))
        r_at = Signal(range(RESULTS))
        stored = Signal(range(RESULTS + 1))
        w_port = results.write_port()
        r_port = results.read_port(domain="comb")
        m.d.comb += [
            w_port.en.eq(self.result_valid),
            w_port.addr.eq(w_at),
            w_port.data.eq(self.result),
            r_port.addr.eq(r_at),
            self.sbuf.valid.eq(walker.valid & (stored != 0)),
            self.written.eq(self.sbuf.valid & self.sbuf.ready),
            walker.step.eq(self.written),
            self.done.eq(self.written & walker.last),
            self.busy.eq(walker.valid | patterns.o.valid),
        ]
        with m.If(planted(self.plant, 92)):
            m.d.comb += self.done.eq(self.sbuf.valid & walker.last)
        m.d.sync += stored.eq(stored + self.result_valid - self.written)
        with m.If(self.result_valid):
            m.d.sync += w_at.eq(w_at + 1)
        with m.If(self.written):
            m.d.sync += r_at.eq(r_at + 1)

        place = walker.address[:3]
        wide = Mux(place[2], 0xF0, 0x0F)
        narrow = (3 << (place & 6))[:8]
        m.d.comb += [
            self.sbuf.quadrants.eq(quadrants),
            self.sbuf.partitions.eq(partitions),
            self.sbuf.bytes.eq(Mux(single | planted(self.plant, 91), wide, narrow)),
        ]
        m.d.comb += [self.sbuf.word[q].eq(walker.address[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        for p in range(cfg.partitions):
            element = r_port.data[32 * p : 32 * p + 32]
            low = element[:16]
            m.d.comb += self.sbuf.data[64 * p : 64 * p + 64].eq(
                Cat(low, Mux(single, element[16:], low), low, Mux(single, element[16:], low))
            )
        return m
