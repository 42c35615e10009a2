"""Rows of a vector unit in words of SBUF: two neighbours are one word of each partition."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.memory_port import sbuf_word_bits
from rtl.contract.config import Config
from rtl.contract.gpsimd import lanes

__all__ = ["LaneRows", "lane_request"]


def lane_request(cfg: Config) -> data.StructLayout:
    """A word of every partition of a core: read, or `bytes` of `data` written in the partitions of the mask."""
    count = lanes(cfg.partitions)
    fields = {"write": 1, "word": sbuf_word_bits(cfg), "bytes": 8, "partitions": count, "data": 64 * count}
    return data.StructLayout(fields)


class LaneRows(wiring.Component):
    """line_*, row_*: as VectorRows has them, but rows are counted from the first column on.

    valid, request, ready: a word of SBUF; what is read is `reply` in the next cycle. row_mask has all or no bytes of a
    lane.
    Timing: a row a cycle each way, for which a word is asked for in every other cycle, for a store before a load; a row
    that is stored and is no whole neighbour of the one before is a word of its own, and so is one that is loaded not in
    the cycle after its neighbour.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.lanes = count = lanes(cfg.partitions)
        # seen by proofs too
        self.kept = Signal()  # the upper half of the word that was read in the cycle before is kept
        self.kept_word = Signal(sbuf_word_bits(cfg))
        self.kept_data = Signal(32 * count)
        self.from_kept = Signal()
        self.upper = Signal()
        self.fresh = Signal()  # the reply is there
        self.waits = Signal()  # a whole row, for its neighbour
        self.waiting = Signal(32 * count)
        super().__init__(
            {
                "line_en": In(1),
                "line_row": In(sbuf_word_bits(cfg) + 1),
                "line_ready": Out(1),
                "line": Out(32 * count),
                "row_en": In(1),
                "row": In(sbuf_word_bits(cfg) + 1),
                "row_data": In(32 * count),
                "row_mask": In(4 * count),
                "row_last": In(1),
                "row_ready": Out(1),
                "valid": Out(1),
                "request": Out(lane_request(cfg)),
                "ready": In(1),
                "reply": In(64 * count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count, request = self.lanes, self.request

        def half(number: int) -> Cat:
            return Cat(self.reply[64 * n + 32 * number :][:32] for n in range(count))

        # a load: the upper half of a word is kept for the row behind
        kept, kept_data, from_kept, upper, fresh = self.kept, self.kept_data, self.from_kept, self.upper, self.fresh
        has_kept, read, writes = Signal(), Signal(), Signal()
        odd = self.line_row[0]
        m.d.comb += [
            has_kept.eq(kept & odd & (self.line_row[1:] == self.kept_word)),
            read.eq(self.line_en & ~has_kept & ~writes & self.ready),
            self.line_ready.eq(has_kept | read),
            self.line.eq(Mux(from_kept, kept_data, Mux(upper, half(1), half(0)))),
        ]
        m.d.sync += [kept.eq(read & ~odd), from_kept.eq(has_kept), upper.eq(odd), self.kept_word.eq(self.line_row[1:])]
        m.d.sync += fresh.eq(read)
        with m.If(fresh):
            m.d.sync += kept_data.eq(Mux(fault("the half of a word that is kept is the other one"), half(0), half(1)))

        # a store: a whole row waits for its neighbour
        waits, waiting = self.waits, self.waiting
        whole, lane_mask = Signal(), Signal(count)
        second = self.row[0]
        alone, both, joins = Signal(), Signal(), Signal()
        m.d.comb += [
            lane_mask.eq(Cat(self.row_mask[4 * n] for n in range(count))),
            whole.eq(lane_mask.all() | fault("a row of lanes that is stored in part is taken for whole")),
            joins.eq(self.row_en & ~second & ~self.row_last & whole),
            both.eq(waits & whole),
            alone.eq(waits & ~whole),  # the neighbour is not whole: what waits goes first
        ]
        m.d.comb += [
            writes.eq(self.row_en & ~joins & request.partitions.any()),
            request.write.eq(writes),
            request.word.eq(Mux(writes, self.row[1:], self.line_row[1:])),
            request.bytes.eq(Mux(both, 0xFF, Mux(second & ~alone, 0xF0, 0x0F))),
            request.partitions.eq(lane_mask | alone.replicate(count)),
            request.data.eq(
                Cat(
                    Cat(
                        Mux(waits, waiting.word_select(n, 32), self.row_data.word_select(n, 32)),
                        self.row_data.word_select(n, 32),
                    )
                    for n in range(count)
                )
            ),
            self.valid.eq((self.line_en & ~has_kept) | writes),
            self.row_ready.eq(joins | (~alone & (self.ready | ~request.partitions.any()))),
        ]
        with m.If(joins):
            m.d.sync += [waits.eq(1), waiting.eq(self.row_data)]
        with m.Elif(self.ready & self.row_en):
            m.d.sync += waits.eq(0)
        return m
