"""The buffer of one input of a switch: a pool of flits, and lists of complete units by (output, queue)."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import ENDPOINT_BITS, FLIT_HEADER_BYTES, UNIT_FLITS_MAX
from rtl.contract.switch_config import SwitchConfig
from rtl.link.framing.framing import FLIT_HEADER_LAYOUT
from rtl.switch.beat import switch_beat, transfer_beat
from rtl.switch.input.flit_pool import FlitPool
from rtl.switch.input.open_units import OpenUnits
from rtl.switch.input.read_scan import ReadScan
from rtl.switch.input.unit_lists import UnitLists
from rtl.switch.input.unit_sender import UnitSender

__all__ = ["Ingress"]


class Ingress(wiring.Component):
    """`valid`, `beat`: accepted flits, whole, their beats one behind the other, the header in the first.

    `endpoint` is that of a flit that begins; `route` (an output) and `refused` answer in the same cycle. Those of its
    head hold for a unit. A refused unit goes to the last output, the responder, if a READ or FETCH_ADD is in it; else
    it is dropped.
    A unit is in its list from the cycle after the first beat of its tail; a refused one from that after the last.

    `slot`, `start`, `first`, `out_port`, `queue`, `now`, `more`, `sending`, `ends`: see UnitSender; `now` only while
    nothing is sent or under way. `lists` (bit output * queues + queue), `lengths`: what waits without what begins now.
    `lone`: one unit waits, of `lone_flits` flits for `lone_port`, `lone_queue`, and nothing is sent or under way; it
    does not depend on `now`. `o_valid`, `o`: a beat, the cycle after it was read.
    `freed`: a place of `freed_account` is free again, one a cycle at most. `dropped_unit`, `dropped_flits`: a refused
    unit is dropped, and its flits; `answered`: one goes to the responder; `bad_unit`, `bad_flits`: what is no unit is
    dropped; `overrun`: there is no place for a flit.
    `clear`: a new session of the link; units not complete are dropped. `flip`, for tests: bit 0 of the beat that is
    stored in this cycle is turned, its parity is not. Parity is only kept here.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        link = cfg.link
        super().__init__(
            {
                "valid": In(1),
                "beat": In(switch_beat(link)),
                "flip": In(1),
                "clear": In(1),
                "endpoint": Out(ENDPOINT_BITS),
                "route": In(range(cfg.outputs)),
                "refused": In(1),
                "slot": In(1),
                "start": In(1),
                "first": In(1),
                "out_port": In(range(cfg.outputs)),
                "queue": In(range(link.queues)),
                "now": In(1),
                "lists": Out(cfg.outputs * link.queues),
                "lengths": Out(data.ArrayLayout(range(cfg.length_cap_flits + 1), cfg.outputs)),
                "more": Out(1),
                "sending": Out(1),
                "ends": Out(1),
                "lone": Out(1),
                "lone_port": Out(range(cfg.outputs)),
                "lone_queue": Out(range(link.queues)),
                "lone_flits": Out(range(UNIT_FLITS_MAX + 1)),
                "o_valid": Out(1),
                "o": Out(transfer_beat(link)),
                "freed": Out(1),
                "freed_account": Out(range(link.accounts)),
                "dropped_unit": Out(1),
                "dropped_flits": Out(range(UNIT_FLITS_MAX + 1)),
                "answered": Out(1),
                "bad_unit": Out(1),
                "bad_flits": Out(range(UNIT_FLITS_MAX + 1)),
                "overrun": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        link = cfg.link
        m.submodules.pool = pool = FlitPool(link)
        m.submodules.maker = maker = OpenUnits(cfg)
        m.submodules.scan = scan = ReadScan(link)
        m.submodules.lists = lists = UnitLists(cfg.outputs, link.queues, link.pool_flits, cfg.length_cap_flits)
        m.submodules.sender = sender = UnitSender(link)

        # Arrival
        beat = self.beat
        header = data.View(FLIT_HEADER_LAYOUT, beat.data[: 8 * FLIT_HEADER_BYTES])
        m.d.comb += [
            self.endpoint.eq(header.endpoint),
            pool.valid.eq(self.valid),
            pool.beat.eq(beat),
            pool.flip.eq(self.flip),
            self.overrun.eq(pool.overrun),
            maker.valid.eq(self.valid),
            maker.first.eq(beat.first),
            maker.last.eq(beat.last),
            maker.header.eq(header),
            maker.stored.eq(pool.stored),
            maker.index.eq(pool.index),
            maker.route.eq(self.route),
            maker.refused.eq(self.refused),
            maker.clear.eq(self.clear),
            self.bad_unit.eq(maker.bad_unit),
            scan.valid.eq(maker.scans),
            scan.first.eq(beat.first),
            scan.last.eq(beat.last),
            scan.head.eq(maker.scan_head),
            scan.queue.eq(maker.scan_queue),
            scan.data.eq(beat.data),
            maker.reads.eq(scan.reads),
        ]

        # Complete units wait; others go
        m.d.comb += [
            lists.push.eq(maker.push),
            lists.push_output.eq(maker.push_output),
            lists.push_queue.eq(maker.push_queue),
            lists.record.eq(maker.record),
            self.lists.eq(lists.lists),
            self.lengths.eq(lists.lengths),
            pool.drop.eq(maker.drop),
            pool.drop_record.eq(maker.drop_record),
            pool.drop_queue.eq(maker.drop_queue),
            self.dropped_unit.eq(maker.dropped_unit),
            self.dropped_flits.eq(Mux(maker.dropped_unit, maker.drop_record.flits, 0)),
            self.answered.eq(maker.answered),
            self.bad_flits.eq(Mux(maker.drop & ~maker.dropped_unit, maker.drop_record.flits, 0)),
            self.freed.eq(pool.freed),
            self.freed_account.eq(pool.freed_account),
        ]

        # The crossbar's side
        m.d.comb += [
            *(getattr(sender, name).eq(getattr(self, name)) for name in ("slot", "start", "first", "now", "queue")),
            lists.pop.eq(sender.pop),
            lists.pop_output.eq(self.out_port),
            lists.pop_queue.eq(self.queue),
            sender.taken.eq(lists.taken),
            sender.record.eq(lists.popped),
            pool.read.eq(sender.read),
            pool.read_beat.eq(sender.beat),
            pool.read_index.eq(sender.index),
            pool.sent.eq(sender.sent),
            pool.sent_slot.eq(sender.sent_slot),
            pool.sent_queue.eq(sender.sent_queue),
            *(getattr(self, name).eq(getattr(sender, name)) for name in ("more", "sending", "ends")),
            self.lone.eq(
                (lists.units == 1)
                & ~sender.sending
                & (~sender.under_way | fault("lone is told between two flits of a unit under way"))
            ),
            self.lone_port.eq(lists.alone_output),
            self.lone_queue.eq(lists.alone_queue),
            self.lone_flits.eq(lists.flits[: len(self.lone_flits)]),
            self.o.data.eq(pool.data),
            self.o.parity.eq(pool.parity),
        ]
        m.d.sync += [
            self.o_valid.eq(sender.read),
            self.o.first.eq(sender.beat == 0),
            self.o.last.eq(sender.beat == link.beats - 1),
            self.o.head.eq(sender.head),
            self.o.tail.eq(sender.tail),
        ]
        return m
