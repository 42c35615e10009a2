"""GP_LOAD and GP_STORE: elements of SBUF to rows of local memory, and back."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, SbufReadSignature, SbufWriteSignature, sbuf_word_bits
from rtl.base.pattern import PatternWalker, partition_mask
from rtl.contract.config import Config
from rtl.contract.gpsimd import lanes

__all__ = ["RowMover"]


class RowMover(wiring.Component):
    """From a cycle with `start` on, element c of `pattern` becomes row `first` + c, or with `store` the other way.

    The pattern has 32-bit elements on as many partitions as a core has lanes; it must stay as it is. row_en, row,
    row_data: a row is written, two cycles after its word was asked for; line_en, row: one is read, and `line` has it
    from the next cycle on. moves: an element has gone through SBUF.
    Timing: a row a cycle to local memory, one in two cycles from it; `done` in the last one.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.lanes = lanes(cfg.partitions)
        self.row_bits = exact_log2(cfg.gpsimd.local_bytes // (4 * self.lanes))
        super().__init__(
            {
                "start": In(1),
                "store": In(1),
                "first": In(self.row_bits),
                "pattern": In(PATTERN_LAYOUT),
                "sbuf_read": Out(SbufReadSignature(cfg)),
                "sbuf_write": Out(SbufWriteSignature(cfg)),
                "row_en": Out(1),
                "line_en": Out(1),
                "row": Out(self.row_bits),
                "row_data": Out(32 * self.lanes),
                "line": In(32 * self.lanes),
                "moves": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        partitions = cfg.partitions
        m.submodules.walker = walker = PatternWalker(cfg)
        start, count = self.pattern.partition_start, self.pattern.partition_count
        mask = partition_mask(start, count, partitions)
        size = partitions // QUADRANTS
        quadrants = Cat(mask[q * size : (q + 1) * size].any() for q in range(QUADRANTS))
        fetched, half, ending = Signal(), Signal(), Signal()  # an element is on the port
        ready = Signal()  # a row has been read
        m.d.comb += [
            walker.command.valid.eq(self.start),
            walker.command.payload.eq(self.pattern),
            self.sbuf_read.valid.eq(walker.valid & ~self.store),
            self.sbuf_write.valid.eq(walker.valid & self.store & ready),
            self.sbuf_write.partitions.eq(mask),
            self.sbuf_write.bytes.eq(Mux(walker.address[2], 0xF0, 0x0F)),
            self.moves.eq(
                (self.sbuf_read.valid & self.sbuf_read.ready) | (self.sbuf_write.valid & self.sbuf_write.ready)
            ),
            walker.step.eq(self.moves),
            self.line_en.eq(walker.valid & self.store & ~ready),
        ]
        for port in (self.sbuf_read, self.sbuf_write):
            m.d.comb += port.quadrants.eq(quadrants)
            m.d.comb += [port.word[q].eq(walker.address[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        written, fetched_last = Signal(), Signal()
        m.d.sync += [
            fetched.eq(self.moves & ~self.store),
            written.eq(fetched),
            half.eq(walker.address[2]),
            fetched_last.eq(self.moves & walker.last & ~self.store),
            ending.eq(fetched_last | (self.moves & walker.last & self.store)),
            ready.eq(self.line_en | (ready & ~self.moves & walker.valid)),
        ]
        with m.If(self.start):
            m.d.sync += self.row.eq(self.first)
        with m.Elif(written | (self.moves & self.store)):
            m.d.sync += self.row.eq(self.row + 1)

        # its first partition is a multiple of the lanes, since that many may start nowhere else
        data = self.sbuf_read.data
        words = [Mux(half, data[64 * p + 32 : 64 * p + 64], data[64 * p : 64 * p + 32]) for p in range(partitions)]
        groups = Array(Cat(*words[at : at + self.lanes]) for at in range(0, partitions, self.lanes))
        m.d.sync += self.row_data.eq(groups[start >> exact_log2(self.lanes)])
        line = self.line ^ fault("a stored row has a bit turned")
        m.d.comb += [
            self.row_en.eq(written & ~(fault("the last row of an image is not loaded") & ending)),
            self.sbuf_write.data.eq(Cat(line.word_select(p % self.lanes, 32).replicate(2) for p in range(partitions))),
            self.done.eq(ending),
        ]
        return m
