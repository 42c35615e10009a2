"""Writes results: they wait for SBUF or PSUM and are written along the access pattern of their operand."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.copies import copies
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, PsumWriteSignature, SbufWriteSignature, psum_word_bits, sbuf_word_bits
from rtl.base.pattern import PatternWalker, partition_mask, size_log2
from rtl.contract.config import Config
from rtl.contract.memmap import Space

__all__ = ["WRITE", "WRITE_WITH_TAIL", "ElementWriter"]

_WRITE = {"pattern": PATTERN_LAYOUT, "width": 2, "final": 1}
WRITE = data.StructLayout(_WRITE)
"""An operand, the logarithm of the elements that are written at once, and whether its instruction ends with it."""
WRITE_WITH_TAIL = data.StructLayout(_WRITE | {"tail": 1, "tail_at": 24})
"""The same; with `tail` one element more follows, as FP32, to byte `tail_at` of SBUF."""

_PATTERNS = 4  # instructions shorter than the pipeline may follow each other


class ElementWriter(wiring.Component):
    """Takes `result` with `result_valid`, 8 bytes a lane, up to `depth` at a time, which the reader has to count.

    The bytes of a result, those of all its elements side by side, are repeated over the 8 bytes of its lane; with
    `lane_bytes` 4 the writer repeats them, and each result is one element, or a pair, of at most 4 bytes. Lanes outside
    `chosen`, which comes with the result, are not written; without `masked` it is not looked at. `tails`: commands are
    WRITE_WITH_TAIL.
    `written` in each cycle in which a memory takes a result; `done` with the last one of an instruction, which has
    then committed. `busy`: there are writes to make; `psum_busy`: to PSUM.
    Timing: a result can be written in the cycle after it came.
    """

    def __init__(self, cfg: Config, depth: int, *, lane_bytes: int = 8, masked: bool = False, tails: bool = False):
        if depth & (depth - 1) or depth < 2:
            raise ValueError(f"depth must be a power of two from 2 up, not {depth}")
        self.cfg = cfg
        self.depth = depth
        self.lane_bits = 8 * lane_bytes
        self.masked = masked
        self.tails = tails
        self.write = WRITE_WITH_TAIL if tails else WRITE
        super().__init__(
            {
                "command": In(stream.Signature(self.write)),
                "result": In(self.lane_bits * cfg.partitions),
                "chosen": In(cfg.partitions),
                "result_valid": In(1),
                "sbuf": Out(SbufWriteSignature(cfg)),
                "psum": Out(PsumWriteSignature(cfg)),
                "written": Out(1),
                "done": Out(1),
                "busy": Out(1),
                "psum_busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.patterns = patterns = Fifo(self.write, _PATTERNS)
        m.submodules.walker = walker = PatternWalker(cfg)
        m.submodules.results = results = Memory(shape=self.lane_bits * cfg.partitions, depth=self.depth, init=[])
        connect(m, flipped(self.command), patterns.i)
        command = patterns.o.payload
        pattern = command.pattern
        follows = Signal()  # a tail, behind the elements of the pattern
        tail = Signal()  # it is next
        tail_at = Signal(24)
        m.d.comb += [
            walker.command.valid.eq(patterns.o.valid & ~follows),
            walker.command.payload.eq(pattern),
            walker.width.eq(command.width),
            patterns.o.ready.eq(walker.command.ready & ~follows),
        ]
        bytes_log2 = Signal(2)  # of a result
        to_psum = Signal()
        final = Signal()
        quadrants = Signal(QUADRANTS)
        partitions = Signal(cfg.partitions)
        size = cfg.partitions // QUADRANTS
        element = size_log2(m, pattern.dtype)
        with m.If(patterns.o.valid & patterns.o.ready):
            mask = partition_mask(pattern.partition_start, pattern.partition_count, cfg.partitions)
            single = command.width == 0
            neighbour = (fault("an 8-bit element is written over its neighbour as well") & (element == 0) & single) | (
                fault("a 16-bit element is written over its neighbour as well") & (element == 1) & single
            )
            m.d.sync += [
                bytes_log2.eq(element + command.width + neighbour),
                to_psum.eq(pattern.space == Space.PSUM),
                final.eq(command.final),
                partitions.eq(Mux(fault("partitions outside the destination are written too"), ~0, mask)),
                *(quadrants[q].eq(mask[q * size : (q + 1) * size].any()) for q in range(QUADRANTS)),
            ]
            if self.tails:
                m.d.sync += [follows.eq(command.tail), tail_at.eq(command.tail_at)]

        w_at = Signal(range(self.depth))
        r_at = Signal(range(self.depth))
        stored = Signal(range(self.depth + 1))
        w_port = results.write_port()
        r_port = results.read_port(domain="comb")
        offered = Signal()
        offers_psum = Signal()
        m.d.comb += [
            w_port.en.eq(self.result_valid),
            w_port.addr.eq(w_at),
            w_port.data.eq(self.result),
            r_port.addr.eq(r_at),
            offered.eq((walker.valid | tail) & (stored != 0)),
            offers_psum.eq(to_psum & ~tail),
            self.sbuf.valid.eq(offered & ~offers_psum),
            self.psum.valid.eq(offered & offers_psum),
            self.written.eq(offered & Mux(offers_psum, self.psum.ready, self.sbuf.ready)),
            walker.step.eq(self.written & ~tail),
            self.done.eq(
                Mux(fault("done does not wait for the memory to take the last element"), offered, self.written)
                & (tail | (walker.last & ~follows))
                & final
            ),
            self.busy.eq(walker.valid | tail | patterns.o.valid),
            self.psum_busy.eq((walker.valid & to_psum) | patterns.o.valid),
        ]
        m.d.sync += stored.eq(stored + self.result_valid - self.written)
        with m.If(self.result_valid):
            m.d.sync += w_at.eq(w_at + 1)
        with m.If(self.written):
            m.d.sync += r_at.eq(r_at + 1)
            if self.tails:
                with m.If(tail):
                    m.d.sync += [tail.eq(0), follows.eq(0)]
                with m.Elif(walker.last):
                    m.d.sync += tail.eq(follows)

        address = walker.address
        size_of = bytes_log2  # of what is written now
        if self.tails:
            address, size_of = Signal.like(walker.address), Signal(2)
            astray = fault("the accumulator goes where the last element went")
            m.d.comb += [
                address.eq(Mux(tail & ~astray, tail_at, walker.address)),
                size_of.eq(Mux(tail, 2, bytes_log2)),
            ]
        words = r_port.data
        if self.lane_bits != 64:
            m.submodules.copied = copied = copies(cfg.partitions)
            m.d.comb += [copied.enable.eq(offered), copied.bytes_log2.eq(size_of), copied.word.eq(r_port.data)]
            words = copied.out
        taken = Signal(8)
        place = address[:3]
        with m.Switch(size_of):
            for n in range(4):
                with m.Case(n):
                    m.d.comb += taken.eq(((1 << (1 << n)) - 1) << (place >> n << n))
        lanes = partitions
        if self.masked:
            m.submodules.chosen = chosen = Memory(shape=cfg.partitions, depth=self.depth, init=[])
            c_write = chosen.write_port()
            c_read = chosen.read_port(domain="comb")
            m.d.comb += [
                c_write.en.eq(self.result_valid),
                c_write.addr.eq(w_at),
                c_write.data.eq(self.chosen),
                c_read.addr.eq(r_at),
            ]
            everyone = fault("lanes that were not chosen are written too").replicate(cfg.partitions)
            lanes = partitions & (c_read.data | everyone)
        for port in (self.sbuf, self.psum):
            m.d.comb += [port.data.eq(words), port.bytes.eq(taken), port.partitions.eq(lanes)]
        m.d.comb += [
            self.sbuf.quadrants.eq(quadrants),
            self.psum.word.eq(address[3:][: psum_word_bits(cfg)]),
        ]
        m.d.comb += [self.sbuf.word[q].eq(address[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        return m
