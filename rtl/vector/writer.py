"""The vector engine's way out: results wait for SBUF and are written along the destination pattern."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fifo import Fifo
from rtl.base.memory_port import QUADRANTS, SbufWriteSignature, sbuf_word_bits
from rtl.base.pattern import PatternWalker, partition_mask
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.vector.reader import RESULTS, TARGET

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
                "command": In(stream.Signature(TARGET)),
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
        m.submodules.patterns = patterns = Fifo(TARGET, _PATTERNS)
        m.submodules.walker = walker = PatternWalker(cfg, plant=self.plant)
        m.submodules.results = results = Memory(shape=32 * cfg.partitions, depth=RESULTS, init=[])
        connect(m, flipped(self.command), patterns.i)
        m.d.comb += [
            walker.command.valid.eq(patterns.o.valid),
            walker.command.payload.eq(patterns.o.payload.pattern),
            patterns.o.ready.eq(walker.command.ready),
        ]
        pattern = patterns.o.payload.pattern
        single = Signal()  # 32-bit elements
        byte = Signal()  # 8-bit elements
        final = Signal()
        quadrants = Signal(QUADRANTS)
        partitions = Signal(cfg.partitions)
        size = cfg.partitions // QUADRANTS
        mask = partition_mask(pattern.partition_start, pattern.partition_count, cfg.partitions)
        with m.If(walker.command.valid & walker.command.ready):
            m.d.sync += [
                single.eq(self._is(pattern.dtype, 4)),
                byte.eq(self._is(pattern.dtype, 1)),
                final.eq(patterns.o.payload.final),
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
            self.done.eq(self.written & walker.last & final),
            self.busy.eq(walker.valid | patterns.o.valid),
        ]
        with m.If(planted(self.plant, 92)):
            m.d.comb += self.done.eq(self.sbuf.valid & walker.last & final)
        m.d.sync += stored.eq(stored + self.result_valid - self.written)
        with m.If(self.result_valid):
            m.d.sync += w_at.eq(w_at + 1)
        with m.If(self.written):
            m.d.sync += r_at.eq(r_at + 1)

        place = walker.address[:3]
        wide = Mux(place[2], 0xF0, 0x0F)
        narrow = (3 << (place & 6))[:8]
        least = (1 << place)[:8]
        m.d.comb += [
            self.sbuf.quadrants.eq(quadrants),
            self.sbuf.partitions.eq(partitions),
            self.sbuf.bytes.eq(Mux(single | planted(self.plant, 91), wide, Mux(byte, least, narrow))),
        ]
        m.d.comb += [self.sbuf.word[q].eq(walker.address[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        for p in range(cfg.partitions):
            element = r_port.data[32 * p : 32 * p + 32]
            low = Cat(element[:8], Mux(byte, element[:8], element[8:16]))
            m.d.comb += self.sbuf.data[64 * p : 64 * p + 64].eq(
                Cat(low, Mux(single, element[16:], low), low, Mux(single, element[16:], low))
            )
        return m

    @staticmethod
    def _is(dtype: Value, size: int) -> Value:
        """Whether elements of a format have `size` bytes."""
        return Cat(*(dtype == fmt.code for fmt in FORMATS.values() if fmt.bytes == size)).any()
