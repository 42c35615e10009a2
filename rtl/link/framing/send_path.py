"""From packets to flits."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout, packet_layout
from rtl.link.framing.framer import Framer
from rtl.link.framing.scheduler import Scheduler
from rtl.link.framing.send_queues import SendQueues

__all__ = ["CREDIT_BITS", "SendPath"]

CREDIT_BITS = 13


class SendPath(wiring.Component):
    """SendQueues, Scheduler and Framer: packets go in as they come, flits go out as credits allow.

    `free`: flits that each account may still send; it must follow `spend` in the next cycle. A unit starts only when
    the dedicated account of its queue and the shared one of its kind have credits for all its flits; the shared one
    is spent first. `pause`: no unit starts. The other ports are those of the parts.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "packet": In(stream.Signature(packet_layout(cfg))),
                "room": Out(cfg.queues),
                "room_pair": Out(cfg.queues),
                "bad_packet": Out(1),
                "free": In(data.ArrayLayout(CREDIT_BITS, cfg.accounts)),
                "pause": In(1),
                "spend": Out(1),
                "account": Out(range(cfg.accounts)),
                "o": Out(stream.Signature(beat_layout(cfg))),
                "clear": In(1),
                "cut": Out(range(UNIT_FLITS_MAX + 2)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.queues = queues = SendQueues(cfg)
        m.submodules.scheduler = scheduler = Scheduler(cfg)
        m.submodules.framer = framer = Framer(cfg)
        wiring.connect(m, wiring.flipped(self.packet), queues.packet)
        wiring.connect(m, framer.o, wiring.flipped(self.o))
        takes = Signal()
        for q in range(cfg.queues):
            credits = self.free[q] + self.free[cfg.queues + q % 2]
            enough = credits >= queues.unit_flits[q]
            m.d.comb += scheduler.eligible[q].eq(
                queues.unit_valid[q] & (enough | (fault("a unit starts with one credit") & (credits != 0)))
            )
        m.d.comb += [
            self.room.eq(queues.room),
            self.room_pair.eq(queues.room_pair),
            self.bad_packet.eq(queues.bad_packet),
            scheduler.flits.eq(queues.unit_flits),
            takes.eq(scheduler.valid & framer.ready & ~self.pause & ~self.clear),
            scheduler.accept.eq(takes),
            queues.take.eq(takes),
            queues.queue.eq(scheduler.queue),
            framer.start.eq(takes),
            framer.unit.eq(queues.unit),
            queues.read.eq(framer.read),
            queues.read_beat.eq(framer.read_beat),
            queues.release.eq(framer.release),
            framer.data.eq(queues.data),
            framer.charge.eq(Array([self.free[cfg.queues] == 0, self.free[cfg.queues + 1] == 0])[framer.queue[0]]),
            self.spend.eq(framer.spend),
            self.account.eq(framer.account),
            framer.clear.eq(self.clear),
            self.cut.eq(framer.cut),
            self.busy.eq(framer.busy),
        ]
        return m
