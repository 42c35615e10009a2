"""Responses of an endpoint: places for them, whom they answer, and their packets."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.endpoint_number import endpoint_number, has_endpoint
from rtl.contract.config import Config
from rtl.contract.link import ENDPOINT_BITS, PacketOpcode
from rtl.contract.memmap import CoreId
from rtl.dma.fabric.packets import RECEIVED, SLOT_BITS, TO_SEND, bank_bits
from rtl.dma.fabric.places import Places
from rtl.dma.layouts import done_layout

__all__ = ["Answers"]


class Answers(wiring.Component):
    """`take` reserves `place`, if `there`, for what `packet` asks for; `holds`: its answer waits for `answer`.

    `read`: a place has been filled; its answer leaves, or, if it holds, `held` pulses with `held_error`.
    `answer` sends what is in `answer_place`, or with `error` an ERROR_RESPONSE to `packet`, which needs no place;
    `answered` says that it has been taken. `drop` gives `answer_place` back unsent.
    Timing: a response a cycle; those that were read go first.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "core_id": In(CoreId.BITS),
                "packet": In(RECEIVED),
                "there": Out(1),
                "place": Out(SLOT_BITS),
                "take": In(1),
                "holds": In(1),
                "read": In(stream.Signature(done_layout(cfg))),
                "held": Out(1),
                "held_error": Out(1),
                "answer": In(1),
                "answer_place": In(SLOT_BITS),
                "error": In(1),
                "answered": Out(1),
                "drop": In(1),
                "send": Out(stream.Signature(TO_SEND)),
                "sent": In(1),
                "sent_slot": In(SLOT_BITS),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        header = self.packet.header
        m.submodules.places = places = Places(self.cfg, classes=1)
        asker = data.StructLayout(
            {"class_": 3, "endpoint": ENDPOINT_BITS, "tag": 10, "address": 64, "length": 10, "holds": 1}
        )
        m.submodules.askers = askers = memory.Memory(shape=asker, depth=1 << SLOT_BITS, init=[])
        keep = askers.write_port()
        look = askers.read_port(domain="comb")
        fresh = Signal(asker)  # what the packet under way would leave
        m.d.comb += [
            self.there.eq(places.there),
            self.place.eq(places.place),
            places.take.eq(self.take),
            # That of the request: an addition finds there what was read for it.
            places.bank.eq(self.packet.slot[: bank_bits(self.cfg)]),
            fresh.class_.eq(self.packet.class_),
            fresh.endpoint.eq(header.source),
            fresh.tag.eq(header.tag),
            fresh.address.eq(header.address),
            fresh.length.eq(header.length_bytes),
            fresh.holds.eq(self.holds),
            keep.en.eq(self.take),
            keep.addr.eq(places.place),
            keep.data.eq(fresh),
        ]

        gathered = self.read.payload.slot[:SLOT_BITS]
        whom = Signal(asker)
        error = Signal()
        out = self.send.payload
        m.d.comb += [look.addr.eq(Mux(self.read.valid, gathered, self.answer_place)), whom.eq(look.data)]
        with m.If(self.read.valid):
            m.d.comb += [
                error.eq(self.read.payload.read_error),
                self.held.eq(whom.holds),
                self.held_error.eq(error),
                self.send.valid.eq(~whom.holds),
                self.read.ready.eq(whom.holds | self.send.ready),
            ]
        with m.Else():
            m.d.comb += [
                error.eq(self.error),
                self.send.valid.eq(self.answer),
                self.answered.eq(self.answer & self.send.ready),
            ]
            with m.If(self.error):
                m.d.comb += whom.eq(fresh)
        m.d.comb += [
            out.slot.eq(look.addr),
            out.holds.eq(~error),
            out.endpoint.eq(whom.endpoint),
            out.class_.eq(whom.class_),
            out.header.opcode.eq(Mux(error, PacketOpcode.ERROR_RESPONSE, PacketOpcode.READ_RESPONSE)),
            out.header.length_bytes.eq(Mux(error, 0, whom.length)),
            out.header.source.eq(Mux(has_endpoint(self.cfg, self.core_id), endpoint_number(self.cfg, self.core_id), 0)),
            out.header.tag.eq(whom.tag),
            out.header.address.eq(whom.address),
        ]
        # An error response leaves its place behind at once.
        lost = self.read.valid & ~self.held & error & self.send.ready
        m.d.comb += [
            places.back.eq(
                Mux(self.sent, 1 << self.sent_slot, 0)
                | Mux(lost, 1 << gathered, 0)
                | Mux(self.drop, 1 << self.answer_place, 0)
            ),
            self.busy.eq(places.used.any()),
        ]
        return m
