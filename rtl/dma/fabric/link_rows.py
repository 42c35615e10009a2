"""Rows of a link to the movers of their banks, and the ends of rows from there."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import lowest
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.contract.config import Config
from rtl.dma.fabric.packets import SLOT_BITS, SLOTS_EACH, bank_bits
from rtl.dma.layouts import done_layout, row_layout

__all__ = ["LinkRows"]


class LinkRows(wiring.Component):
    """`first` and `second`: rows, each for `row[k]`, the mover of the bank of its slot; `first` goes first at each.
    `done[k]`: their ends; `end[kind]` those of the kind in the slot, requests or responses.

    `ordered`: those of kind 0, which are the rows of `second`, end in the order in which they began; others, and all
    without `ordered`, as they come. A mover has its rows of one memory in their order.
    Timing: combinational; a row and an end of each kind a cycle. `own` is the core's configuration, `link` link_config.
    """

    def __init__(self, own: Config, link: Config, *, ordered: bool = False):
        self.banks = own.dma.link_movers
        self.bits = bank_bits(own)
        self.ordered = ordered
        row = stream.Signature(row_layout(link))
        done = stream.Signature(done_layout(link))
        super().__init__(
            {
                "first": In(row),
                "second": In(row),
                "row": Out(row).array(self.banks),
                "done": In(done).array(self.banks),
                "end": Out(done).array(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = range(self.banks)
        first, second = (stream_.payload.slot[: self.bits] for stream_ in (self.first, self.second))
        open_ = Signal(init=1)  # rows of `second` may begin
        for k, row in enumerate(self.row):
            mine = Signal(name=f"first{k}")
            other = Signal(name=f"second{k}")
            m.d.comb += [
                mine.eq(self.first.valid & (first == k)),
                other.eq(self.second.valid & (second == k) & open_),
                row.valid.eq(mine | other),
                row.payload.eq(Mux(mine, self.first.payload, self.second.payload)),
            ]
            with m.If(mine):
                m.d.comb += self.first.ready.eq(row.ready)
            with m.Elif(other):
                m.d.comb += self.second.ready.eq(row.ready)

        offered: list[Signal] = []
        turns: list[Signal] = []
        for kind, end in enumerate(self.end):
            offers = Signal(self.banks, name=f"offers{kind}")
            turn = Signal(self.banks, name=f"turn{kind}")
            m.d.comb += [
                offers.eq(Cat(done.valid & (done.payload.slot[SLOT_BITS] == kind) for done in self.done)),
                turn.eq(lowest(offers)),
                end.valid.eq(turn.any()),
            ]
            for k in banks:
                with m.If(turn[k]):
                    m.d.comb += end.payload.eq(self.done[k].payload)
            offered.append(offers)
            turns.append(turn)
        for k, done in enumerate(self.done):
            m.d.comb += done.ready.eq(Cat(turns[kind][k] & end.ready for kind, end in enumerate(self.end)).any())

        if self.ordered and self.banks > 1:
            m.submodules.order = order = Fifo(self.bits, SLOTS_EACH)  # banks of the rows whose ends are awaited
            slips = fault("pieces of descriptors are sent as their banks have them")
            begins = self.second.valid & self.second.ready
            m.d.comb += [
                open_.eq(order.i.ready),
                order.i.valid.eq(begins),
                order.i.payload.eq(second),
                order.o.ready.eq(self.end[0].valid & self.end[0].ready),
            ]
            with m.If(~slips):
                m.d.comb += turns[0].eq(offered[0] & Mux(order.o.valid, 1 << order.o.payload, 0))
        return m
