"""Flits of the send queues, in the layout in which they leave."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.ram import Ram
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.framing.framing import PACKET_FLITS_MAX, WORD_BITS, rows_of
from rtl.link.framing.placing import bank_layout, slots_of

__all__ = ["SendStore"]


class SendStore(wiring.Component):
    """A ring of flits for each queue, in two RAMs: one for the even rows of flits, one for the odd.

    `banks`: words for `queue`, which has `used` flits that wait or are being read; `more` flits of it are there from
    now on. `room`, `room_pair`: a longest packet fits into the queue, or two. `read` gives `data`, row `row` of the
    oldest flit of `from_queue`, a cycle later; `release` frees that flit.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "queue": In(range(cfg.queues)),
                "banks": In(bank_layout(cfg)).array(2),
                "more": In(range(UNIT_FLITS_MAX + 1)),
                "used": Out(range(slots_of(cfg) + 1)),
                "room": Out(cfg.queues),
                "room_pair": Out(cfg.queues),
                "from_queue": In(range(cfg.queues)),
                "read": In(1),
                "row": In(range(cfg.beats)),
                "release": In(1),
                "data": Out(8 * cfg.beat_bytes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        slots = slots_of(cfg)
        rows = rows_of(cfg)
        used = Array(Signal(range(slots + 1), name=f"used_{n}") for n in range(cfg.queues))
        slot = Array(Signal(range(slots), name=f"slot_{n}") for n in range(cfg.queues))
        out = self.from_queue
        m.d.comb += self.used.eq(used[self.queue])
        for n in range(cfg.queues):
            more = Mux(self.queue == n, self.more, 0)
            m.d.sync += used[n].eq(used[n] + more - (self.release & (out == n)))
            m.d.comb += self.room[n].eq(used[n] <= slots - PACKET_FLITS_MAX)
            if slots >= 2 * PACKET_FLITS_MAX:
                m.d.comb += self.room_pair[n].eq(used[n] <= slots - 2 * PACKET_FLITS_MAX)
        with m.If(self.release):
            m.d.sync += slot[out].eq(Mux(slot[out] == slots - 1, 0, slot[out] + 1))

        depth = cfg.queues << (ceil_log2(slots) + ceil_log2(rows.count) - 1)
        banks = [Ram(rows.bits, depth, WORD_BITS) for _ in range(2)]
        for n, bank in enumerate(banks):
            m.submodules[f"bank_{n}"] = bank
            part = self.banks[n]
            m.d.comb += [
                bank.write_en.eq(part.mask.any()),
                bank.write_mask.eq(part.mask),
                bank.write_data.eq(part.data),
                bank.write_address.eq(Cat(part.address, self.queue)),
                bank.read_en.eq(self.read & (self.row[0] == n)),
                bank.read_address.eq(Cat(self.row[1:], slot[out], out)),
            ]
        odd = Signal()
        with m.If(self.read):
            m.d.sync += odd.eq(self.row[0])
        m.d.comb += self.data.eq(Mux(odd, banks[1].read_data, banks[0].read_data))
        return m
