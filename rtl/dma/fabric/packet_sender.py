"""Sends packets: header, payload from a staging memory, signal without a gap behind it."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.base.packet import BEAT_BYTES, PACKET_BEAT
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.contract.link import PacketOpcode
from rtl.dma.fabric.packet_queues import PacketQueues
from rtl.dma.fabric.packets import SLOT_BITS, SLOTS_EACH, TO_SEND, UNIT_BITS, bank_bits, flagged, payload_bytes

__all__ = ["PacketSender"]


class PacketSender(wiring.Component):
    """Packets of one kind, in the order of `send`; there is always room for one that `holds` a place. With `classes` of
    them only those of one class are in order, and wait for `room` of their class (PacketQueues).

    `write_unit[k]` (slot, 16-byte unit) stores `write_data[k]` in bank k, that of the slot. `sent` pulses with `slot`
    when the last beat of a packet that holds a place has been taken, `signalled` if it was a SIGNAL. Bytes behind the
    packet are 0.
    Timing: a beat a cycle, without a gap from a packet to one that waits.
    """

    def __init__(self, cfg: Config, *, classes: int = 1):
        self.cfg = cfg
        self.classes = classes
        banks = cfg.dma.link_movers
        super().__init__(
            {
                "write_en": In(1).array(banks),
                "write_unit": In(SLOT_BITS + UNIT_BITS).array(banks),
                "write_data": In(128).array(banks),
                "send": In(stream.Signature(TO_SEND)),
                "room": In(classes),
                "o": Out(stream.Signature(PACKET_BEAT)),
                "sent": Out(1),
                "signalled": Out(1),
                "slot": Out(SLOT_BITS),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = PacketQueues(self.classes)
        bits = bank_bits(self.cfg)
        banks = [
            Ram(8 * BEAT_BYTES, SLOTS_EACH >> bits << UNIT_BITS - 2, granule=128)
            for _ in range(self.cfg.dma.link_movers)
        ]
        for k, bank in enumerate(banks):
            m.submodules[f"bank{k}"] = bank
        connect(m, flipped(self.send), queue.i)
        m.d.comb += queue.room.eq(self.room)
        packet = queue.o.payload
        beat = self.o.payload

        row = Signal(4)  # beats of the body that were taken
        body = Signal()  # the header was taken
        size = Signal(10)
        beats = Signal(4)
        taken = Signal()
        m.d.comb += [
            size.eq(payload_bytes(packet.header)),
            beats.eq((size + Mux(flagged(packet.header), 8, 0) + (BEAT_BYTES - 1)) >> 6),
            self.o.valid.eq(queue.o.valid),
            beat.first.eq(~body),
            beat.last.eq(Mux(body, row + 1 == beats, beats == 0)),
            beat.class_.eq(packet.class_),
            beat.endpoint.eq(packet.endpoint),
            taken.eq(self.o.valid & self.o.ready),
            queue.o.ready.eq(taken & beat.last),
            self.sent.eq(taken & beat.last & packet.holds),
            self.signalled.eq(taken & beat.last & (packet.header.opcode == PacketOpcode.SIGNAL)),
            self.slot.eq(packet.slot),
            self.busy.eq(queue.holds),
        ]
        for k, bank in enumerate(banks):
            unit = self.write_unit[k]
            m.d.comb += [
                bank.write_en.eq(self.write_en[k]),
                bank.write_address.eq(Cat(unit[2:UNIT_BITS], unit[UNIT_BITS + bits :])),
                bank.write_mask.eq(1 << unit[:2]),
                bank.write_data.eq(self.write_data[k].replicate(4)),
                bank.read_en.eq(taken & ~beat.last & (packet.slot[:bits] == k)),
                bank.read_address.eq(Cat(Mux(body, row + 1, 0)[: UNIT_BITS - 2], packet.slot[bits:])),
            ]
        stored = Array(bank.read_data for bank in banks)[packet.slot[:bits]]
        with m.If(taken):
            m.d.sync += [body.eq(~beat.last), row.eq(Mux(body & ~beat.last, row + 1, 0))]

        # What of this beat is payload, and where the signal stands.
        left = Signal(10)
        m.d.comb += left.eq(size - (row << 6))
        own = Cat((left > n).replicate(8) for n in range(BEAT_BYTES))
        over = Signal()  # the payload ended in a beat before
        m.d.comb += over.eq((row << 6) > size)
        signal = Mux(flagged(packet.header), packet.signal.as_value(), 0)
        shifted = Signal(8 * BEAT_BYTES + 64)
        m.d.comb += shifted.eq(signal << (size[:6] << 3))
        with m.If(~body):
            m.d.comb += beat.data.eq(packet.header.as_value())
        with m.Elif(over):
            m.d.comb += beat.data.eq(
                shifted[8 * BEAT_BYTES :]
                & Mux(fault("a signal that reaches into the next beat is cut"), 0, Const(2**64 - 1, 64))
            )
        with m.Else():
            here = Mux(row == size >> 6, shifted[: 8 * BEAT_BYTES], 0)
            m.d.comb += beat.data.eq((stored & own) | here)
        return m
