"""Signals to other cores of copies inside this one."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import SEMAPHORE_UPDATE, ring_count
from rtl.base.endpoint_number import endpoint_number
from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.contract.config import Config
from rtl.contract.isa import Update
from rtl.contract.link import PacketFlag, PacketOpcode
from rtl.contract.memmap import CoreId
from rtl.dma.fabric.packets import SIGNAL_LAYOUT, TO_SEND
from rtl.dma.layouts import slot_bits

__all__ = ["AWAY", "AWAY_SIGNAL", "AwaySignals"]

AWAY = max(Update) + 1
"""As the update of a descriptor's outcome: its signal goes to another core."""

AWAY_SIGNAL = data.StructLayout({"class_": 3, "address": 64, "signal": SIGNAL_LAYOUT})
"""What goes there."""


class AwaySignals(wiring.Component):
    """`keep` stores what a descriptor in `slot` will signal elsewhere. Of `rings`, signals of descriptors that have
    ended (that in `rings_slot`), those with the update AWAY become packets at `send`, all others go on to `o`.

    A packet waits here until the one before has left the queue of requests (`sent`): that has room for all packets with
    a place and one more, so that what holds a place never waits behind signals.
    Timing: combinational to `o`; two signals to other cores wait here, a third one at `rings`.
    """

    def __init__(self, own: Config):
        self.own = own
        signal = stream.Signature(SEMAPHORE_UPDATE)
        super().__init__(
            {
                "keep": In(1),
                "slot": In(slot_bits(own)),
                "kept": In(AWAY_SIGNAL),
                "rings": In(signal),
                "rings_slot": In(slot_bits(own)),
                "o": Out(signal),
                "send": Out(stream.Signature(TO_SEND)),
                "sent": In(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        own = self.own
        slots = ring_count(own) * own.dma.ring_depth
        m.submodules.table = table = memory.Memory(shape=AWAY_SIGNAL, depth=slots, init=[])
        keep, look = table.write_port(), table.read_port(domain="comb")
        m.submodules.queue = queue = Fifo(AWAY_SIGNAL, 2)
        away = Signal()
        under_way = Signal()
        packet = self.send.payload
        waits = queue.o.payload
        m.d.comb += [
            keep.en.eq(self.keep),
            keep.addr.eq(self.slot),
            keep.data.eq(self.kept),
            look.addr.eq(self.rings_slot),
            away.eq(self.rings.payload.update == AWAY),
            self.o.valid.eq(self.rings.valid & ~away),
            self.o.payload.eq(self.rings.payload),
            queue.i.valid.eq(self.rings.valid & away),
            queue.i.payload.eq(look.data),
            self.rings.ready.eq((away & queue.i.ready) | (~away & self.o.ready)),
            self.send.valid.eq(queue.o.valid & ~under_way),
            queue.o.ready.eq(self.send.ready & ~under_way),
            packet.endpoint.eq(endpoint_number(own, waits.address[CoreId.LSB :][: CoreId.BITS])),
            packet.class_.eq(waits.class_ & ~fault("a signal of a copy inside leaves in class 0").replicate(3)),
            packet.header.opcode.eq(PacketOpcode.SIGNAL),
            packet.header.flags.eq(PacketFlag.SIGNAL),
            packet.header.address.eq(waits.address),
            packet.signal.eq(waits.signal),
            self.busy.eq(queue.o.valid | under_way),
        ]
        with m.If(self.send.valid & self.send.ready):
            m.d.sync += under_way.eq(1)
        with m.Elif(self.sent):
            m.d.sync += under_way.eq(0)
        return m
