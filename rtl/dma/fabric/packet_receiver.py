"""Takes packets in: payload to a staging memory, header and signal to whoever executes them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.base.fifo import Fifo
from rtl.base.layouts import ADDRESS_LAYOUT
from rtl.base.packet import BEAT_BYTES, PACKET_BEAT
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.contract.link import ENDPOINT_BITS
from rtl.contract.memmap import Space
from rtl.dma.fabric.packets import (
    HEADER,
    RECEIVED,
    ROUND_BITS,
    SLOT_BITS,
    SLOTS_EACH,
    UNIT_BITS,
    bank_bits,
    bank_of,
    flagged,
    payload_bytes,
    window_bank,
)

__all__ = ["PacketReceiver"]

_ROWS = 1 << UNIT_BITS - 2  # beats of the longest payload


class PacketReceiver(wiring.Component):
    """Packets of one kind, in order. A request takes a place that is not in use (`usable`), of the bank of its address
    (bank_of), and waits for one; a response takes the place its tag names, if that is in `usable`, the tag of this
    `round` and the endpoint it was sent to this one, and else is dropped: responses always sink. `numbered`: this core
    has an `endpoint`; if not, all packets are for another.

    `began` pulses with `slot` when a place is taken. `o`: the whole packet; `read_unit[k]` (slot, 16-byte unit)
    shows the unit, of bank k, in the next cycle. `dropped` pulses for a response that nobody waits for, `foreign` with
    it if it was sent to another endpoint.
    Timing: a beat a cycle.
    """

    def __init__(self, cfg: Config, *, by_tag: bool):
        self.cfg = cfg
        self.by_tag = by_tag
        banks = cfg.dma.link_movers
        super().__init__(
            {
                "i": In(stream.Signature(PACKET_BEAT)),
                "o": Out(stream.Signature(RECEIVED)),
                "endpoint": In(ENDPOINT_BITS),
                "numbered": In(1),
                "usable": In(SLOTS_EACH),
                "round": In(ROUND_BITS),
                "began": Out(1),
                "slot": Out(SLOT_BITS),
                "dropped": Out(1),
                "foreign": Out(1),
                "read_en": In(1).array(banks),
                "read_unit": In(SLOT_BITS + UNIT_BITS).array(banks),
                "read_data": Out(128).array(banks),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat = self.i.payload
        m.submodules.whole = whole = Fifo(RECEIVED, 2)
        bits = bank_bits(self.cfg)
        connect(m, whole.o, flipped(self.o))

        first = View(HEADER, beat.data[: HEADER.size])
        packet = Signal(RECEIVED)
        place = Signal(SLOT_BITS)
        welcome = Signal()
        mine = Signal()
        m.d.comb += mine.eq((beat.endpoint == self.endpoint) & self.numbered)
        if self.by_tag:
            known = first.tag[SLOT_BITS:] == self.round
            m.d.comb += [place.eq(first.tag), welcome.eq(known & mine & self.usable.bit_select(place, 1))]
        else:
            bank = Signal(bits)
            free = Signal(SLOTS_EACH)
            to_sbuf = View(ADDRESS_LAYOUT, first.address).space == Space.SBUF
            window = Signal(bits)
            m.d.comb += window.eq(window_bank(self.cfg, first.address))
            with m.If(fault("writes to HBM are made by the mover of their 128 bytes")):
                m.d.comb += window.eq(first.address >> 7)
            m.d.comb += [
                bank.eq(bank_of(self.cfg, to_sbuf, first.address, window)),
                free.eq(Cat(self.usable[n] & (bank == n % self.cfg.dma.link_movers) for n in range(SLOTS_EACH))),
                welcome.eq(free.any()),
            ]
            for n in reversed(range(SLOTS_EACH)):
                with m.If(free[n]):
                    m.d.comb += place.eq(n)

        inside = Signal()  # between the first and the last beat of a packet
        keep = Signal()  # it has a place
        row = Signal(range(_ROWS + 3))  # beats of the body so far; stops above the most there can be
        at = Signal(10)  # bytes of the payload
        beats = Signal(range(_ROWS + 2))
        taken = Signal()
        m.d.comb += [
            at.eq(payload_bytes(packet.header)),
            beats.eq((at + Mux(flagged(packet.header), 8, 0) + (BEAT_BYTES - 1)) >> 6),
            self.i.ready.eq(Mux(inside, whole.i.ready, welcome | self.by_tag | ~beat.first)),
            taken.eq(self.i.valid & self.i.ready),
            self.began.eq(taken & ~inside & beat.first & welcome),
            self.slot.eq(place),
            self.dropped.eq(taken & ~inside & beat.first & ~welcome),
            self.foreign.eq(self.dropped & ~mine),
            self.busy.eq(inside | whole.o.valid),
        ]
        with m.If(taken & ~inside & beat.first):
            m.d.sync += [
                packet.slot.eq(place),
                packet.class_.eq(beat.class_),
                packet.foreign.eq(~mine),
                packet.header.eq(first),
                packet.signal.eq(0),
                keep.eq(welcome),
                row.eq(0),
                inside.eq(1),
            ]

        # A packet of one beat is handed over a cycle later, like any other in the cycle of its last beat.
        alone = Signal()
        ends = Signal()
        with m.If(taken & ~inside):
            m.d.sync += alone.eq(beat.last & beat.first)
        with m.If(inside & alone):
            m.d.comb += [self.i.ready.eq(0), ends.eq(whole.i.ready)]
        with m.Elif(inside):
            m.d.comb += ends.eq(taken & beat.last)
            with m.If(taken & (row != _ROWS + 2)):
                m.d.sync += row.eq(row + 1)
        with m.If(ends):
            m.d.sync += [inside.eq(0), alone.eq(0)]
        m.d.comb += [
            whole.i.valid.eq(ends & keep),
            whole.i.payload.eq(packet),
            whole.i.payload.whole.eq(row + ~alone == beats),
        ]

        # The signal may begin in one beat and end in the next.
        begins = Signal(64)
        spills = Signal(64)
        signal = Signal(64)
        m.d.comb += [
            begins.eq(beat.data >> (at[:6] << 3)),
            spills.eq(beat.data[:56] << ((~at[:6] + 1)[:3] << 3)),
            signal.eq(packet.signal.as_value()),
        ]
        with m.If(row == at >> 6):
            m.d.comb += signal.eq(begins)
        with m.Elif((row == (at >> 6) + 1) & (at[:6] > BEAT_BYTES - 8)):
            m.d.comb += signal.eq(packet.signal.as_value() | spills)
        with m.If(inside & taken):
            m.d.sync += packet.signal.eq(signal)
        with m.If(~alone):
            m.d.comb += whole.i.payload.signal.eq(signal)

        for k in range(self.cfg.dma.link_movers):
            m.submodules[f"bank{k}"] = bank = Ram(8 * BEAT_BYTES, SLOTS_EACH >> bits << UNIT_BITS - 2)
            unit = self.read_unit[k]
            quarter = Signal(2, name=f"quarter{k}")
            m.d.comb += [
                bank.write_en.eq(taken & inside & keep & (row < _ROWS) & (packet.slot[:bits] == k)),
                bank.write_address.eq(Cat(row[: UNIT_BITS - 2], packet.slot[bits:])),
                bank.write_mask.eq(1),
                bank.write_data.eq(beat.data),
                bank.read_en.eq(self.read_en[k]),
                bank.read_address.eq(Cat(unit[2:UNIT_BITS], unit[UNIT_BITS + bits :])),
                self.read_data[k].eq(bank.read_data.word_select(quarter, 128)),
            ]
            with m.If(self.read_en[k]):
                m.d.sync += quarter.eq(unit)
        return m
