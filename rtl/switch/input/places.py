"""Which slots of a pool are free, and what is on its way back to them."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.base.fault import fault
from rtl.base.fifo import RamFifo
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.switch.input.unit_record import record_layout, slot_layout

__all__ = ["Places"]


class Places(wiring.Component):
    """`take`: the slot `index` is in use from now on, if there is one free (`stored`).

    `sent`: the flit in `sent_slot` of a unit of `sent_queue` leaves. `drop`: all flits of `drop_record`, which wait in
    a FIFO and go one in each cycle without `sent`. `freed`: a slot of `freed_account` is free.
    Timing: a slot may be taken 2 cycles after it was freed; the first flit of a drop is freed 2 cycles later at best.
    """

    def __init__(self, pool_flits: int, queues: int):
        self.pool_flits = pool = pool_flits
        self.queues = queues
        # seen by proofs too
        self.places = RamFifo(bits_for(pool - 1), pool)
        dropped = data.StructLayout({"record": record_layout(pool), "queue": range(queues)})
        self.drops = RamFifo(dropped, pool)  # each record holds a slot that no other holds: it is never full
        self.fresh = Signal(range(pool + 1))  # slots never used yet
        self.slot = Signal(slot_layout(pool))  # that is freed
        super().__init__(
            {
                "take": In(1),
                "stored": Out(1),
                "index": Out(bits_for(pool - 1)),
                "sent": In(1),
                "sent_slot": In(slot_layout(pool)),
                "sent_queue": In(range(queues)),
                "drop": In(1),
                "drop_record": In(record_layout(pool)),
                "drop_queue": In(range(queues)),
                "freed": Out(1),
                "freed_account": Out(range(queues + 2)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pool, queues = self.pool_flits, self.queues
        m.submodules.places = places = self.places
        m.submodules.drops = drops = self.drops
        fresh, slot = self.fresh, self.slot
        m.d.comb += [
            self.stored.eq(places.o.valid | (fresh != pool)),
            self.index.eq(Mux(places.o.valid, places.o.payload, fresh[: len(self.index)])),
            places.o.ready.eq(self.take),
            drops.i.valid.eq(self.drop),
            drops.i.payload.record.eq(self.drop_record),
            drops.i.payload.queue.eq(self.drop_queue),
        ]
        with m.If(self.take & ~places.o.valid & self.stored):
            m.d.sync += fresh.eq(fresh + 1)

        at = Signal(range(UNIT_FLITS_MAX))
        frees = Signal()  # a flit of the oldest drop
        sent_before = Signal(slot_layout(pool))
        queue = Signal.like(self.drop_queue)
        record = drops.o.payload.record
        again = Signal()
        m.d.comb += [
            again.eq(fault("a slot that was sent is freed twice") & ~self.sent & (sent_before.as_value() != 0)),
            frees.eq(drops.o.valid & ~self.sent & ~again),
            slot.eq(Mux(self.sent, self.sent_slot, Mux(again, sent_before, record.slots[at]))),
            queue.eq(Mux(self.sent, self.sent_queue, drops.o.payload.queue)),
            drops.o.ready.eq(frees & (at == (record.flits - 1)[:2])),
            self.freed.eq(self.sent | frees & ~((at == 0) & fault("the first flit of what is dropped is not freed"))),
            self.freed_account.eq(
                Mux(
                    slot.dedicated & ~fault("an input of a switch frees every flit to the shared account"),
                    queue,
                    queues + (queue & 1)[:1],
                )
            ),
            places.i.payload.eq(slot.index),
            places.i.valid.eq((self.freed | again) & ~(self.sent & fault("a slot that was sent is not used again"))),
        ]
        with m.If(frees):
            m.d.sync += at.eq(Mux(drops.o.ready, 0, at + 1))
        m.d.sync += sent_before.eq(Mux(self.sent, self.sent_slot, 0))
        return m
