"""The places of an input's flits: beats go in as they come, and are read in any order of flits."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.base.fault import fault
from rtl.base.ram import Ram
from rtl.contract.link_config import LinkConfig
from rtl.switch.beat import switch_beat
from rtl.switch.input.places import Places
from rtl.switch.input.unit_record import record_layout, slot_layout

__all__ = ["FlitPool"]


class FlitPool(wiring.Component):
    """`valid`, `beat`: beats of whole flits, one behind the other; each flit gets a place, `index`, told with its first
    beat, if there is one free (`stored`, else `overrun`). `flip`: bit 0 of the beat is turned, its parity is not.

    `read`: beat `read_beat` of the flit at `read_index`; `data` and `parity` are there in the next cycle.
    `sent`, `drop` and what belongs to them, `freed`, `freed_account`: see Places.
    """

    def __init__(self, cfg: LinkConfig):
        self.link = cfg
        pool, queues = cfg.pool_flits, range(cfg.queues)
        super().__init__(
            {
                "valid": In(1),
                "beat": In(switch_beat(cfg)),
                "flip": In(1),
                "stored": Out(1),
                "index": Out(bits_for(pool - 1)),
                "overrun": Out(1),
                "read": In(1),
                "read_beat": In(range(cfg.beats)),
                "read_index": In(bits_for(pool - 1)),
                "data": Out(8 * cfg.beat_bytes),
                "parity": Out(cfg.beat_bytes),
                "sent": In(1),
                "sent_slot": In(slot_layout(pool)),
                "sent_queue": In(queues),
                "drop": In(1),
                "drop_record": In(record_layout(pool)),
                "drop_queue": In(queues),
                "freed": Out(1),
                "freed_account": Out(range(cfg.accounts)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link, beat = self.link, self.beat
        m.submodules.ram = ram = Ram(9 * link.beat_bytes, link.beats << len(self.index))
        m.submodules.places = places = Places(link.pool_flits, link.queues)
        begins = self.valid & beat.first
        at = Signal(range(link.beats))
        index, stored = Signal.like(self.index), Signal()  # of the flit under way
        m.d.comb += [
            places.take.eq(begins),
            self.stored.eq(places.stored),
            self.index.eq(places.index),
            self.overrun.eq(begins & ~places.stored),
            ram.write_en.eq(self.valid & Mux(beat.first, places.stored, stored)),
            ram.write_mask.eq(1),
            ram.write_address.eq(Mux(beat.first, Cat(at & 0, places.index), Cat(at, index))),
            ram.write_data.eq(Cat(beat.data ^ self.flip, Mux(fault("parity of a flit is not stored"), 0, beat.parity))),
            ram.read_en.eq(self.read),
            ram.read_address.eq(Cat(self.read_beat, self.read_index)),
            Cat(self.data, self.parity).eq(ram.read_data),
            places.sent.eq(self.sent),
            places.sent_slot.eq(self.sent_slot),
            places.sent_queue.eq(self.sent_queue),
            places.drop.eq(self.drop),
            places.drop_record.eq(self.drop_record),
            places.drop_queue.eq(self.drop_queue),
            self.freed.eq(places.freed),
            self.freed_account.eq(places.freed_account),
        ]
        with m.If(self.valid):
            m.d.sync += at.eq(Mux(beat.first, 1, at + 1))
        with m.If(begins):
            m.d.sync += [index.eq(places.index), stored.eq(places.stored)]
        return m
