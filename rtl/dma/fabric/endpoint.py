"""Executes the requests of other cores, in their order. Connects its parts."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.dma_port import SEMAPHORE_INDEX_BITS, SEMAPHORE_UPDATE
from rtl.contract.config import Config
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import CoreId
from rtl.dma.fabric.admit import Admit
from rtl.dma.fabric.answers import Answers
from rtl.dma.fabric.execute import Execute
from rtl.dma.fabric.packets import RECEIVED, SLOT_BITS, SLOTS_EACH, TO_SEND, added, flagged, staging
from rtl.dma.fabric.pending import Pending
from rtl.dma.layouts import done_layout, row_layout

__all__ = ["Endpoint"]


class Endpoint(wiring.Component):
    """One request at a time from `request`; writes and reads are then under way in the movers.

    `cfg` is link_config. `scatter`: rows from the staging memory of requests; `wrote`: they have committed.
    `gather`: rows to the staging memory of responses; `read`: they are there. `send`, `sent`: responses.
    `free`: places of requests that are not in use; `begun` takes one. `adding`: what the mover takes from the
    place `adding_slot` has to be added to what was gathered last.
    Order: a read or fetch-add waits until no earlier write of its class is open, a signal likewise in Pending; an
    addition waits for all open writes, and nothing begins before it has committed.
    `refused` pulses for a request that is not executed, with `foreign` if it is for another core;
    `failed` for a signal dropped after an error of HBM.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        row = stream.Signature(row_layout(cfg))
        done = stream.Signature(done_layout(cfg))
        super().__init__(
            {
                "clear": In(1),
                "core_id": In(CoreId.BITS),
                "request": In(stream.Signature(RECEIVED)),
                "begun": In(1),
                "begun_slot": In(SLOT_BITS),
                "free": Out(SLOTS_EACH, init=(1 << SLOTS_EACH) - 1),
                "scatter": Out(row),
                "wrote": In(done),
                "gather": Out(row),
                "read": In(done),
                "send": Out(stream.Signature(TO_SEND)),
                "sent": In(1),
                "sent_slot": In(SLOT_BITS),
                "signal": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "adding": Out(1),
                "adding_slot": Out(SLOT_BITS),
                "refused": Out(1),
                "foreign": Out(1),
                "failed": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        packet = self.request.payload
        header = packet.header
        opcode = header.opcode
        m.submodules.admit = admit = Admit(cfg)
        m.submodules.pending = pending = Pending()
        connect(m, pending.o, flipped(self.signal))

        m.submodules.answers = answers = Answers(cfg)
        connect(m, flipped(self.read), answers.read)
        connect(m, answers.send, flipped(self.send))
        place = answers.place
        found = Signal(SLOT_BITS)  # what an addition gathered
        m.d.comb += [
            answers.core_id.eq(self.core_id),
            answers.packet.eq(packet),
            answers.holds.eq(opcode != PacketOpcode.READ),
            answers.answer_place.eq(found),
            answers.sent.eq(self.sent),
            answers.sent_slot.eq(self.sent_slot),
        ]

        # Rows.
        local = self.scatter.payload
        m.d.comb += [
            local.slot.eq(packet.slot),
            local.from_sbuf.eq(1),
            local.to_sbuf.eq(admit.to_sbuf),
            local.source.eq(staging(cfg, 0, packet.slot)),
            local.destination.eq(header.address[: len(local.destination)]),
            local.bytes.eq(header.length_bytes),
            local.add.eq(added(header)),
            self.gather.payload.slot.eq(place | SLOTS_EACH),
            self.gather.payload.from_sbuf.eq(admit.to_sbuf),
            self.gather.payload.to_sbuf.eq(1),
            self.gather.payload.source.eq(header.address[: len(self.gather.payload.source)]),
            self.gather.payload.destination.eq(staging(cfg, 1, place)),
            self.gather.payload.bytes.eq(header.length_bytes),
        ]

        # Commits. A place of a write is free again with its commit.
        closes = Signal()  # the packet itself gives its place back
        m.d.comb += [
            self.wrote.ready.eq(1),
            pending.clear.eq(self.clear),
            pending.slot.eq(packet.slot),
            pending.class_.eq(packet.class_),
            pending.commit.eq(self.wrote.valid),
            pending.commit_slot.eq(self.wrote.payload.slot[: len(pending.commit_slot)]),
            pending.commit_error.eq(self.wrote.payload.write_error),
            pending.signal_class.eq(packet.class_),
            pending.signal.payload.index.eq(packet.signal.index[:SEMAPHORE_INDEX_BITS]),
            pending.signal.payload.update.eq(packet.signal.update[: len(pending.signal.payload.update)]),
            pending.signal.payload.value.eq(packet.signal.value),
            self.failed.eq(pending.dropped),
            admit.core_id.eq(self.core_id),
            admit.packet.eq(packet),
            self.foreign.eq(self.refused & admit.foreign),
            self.adding_slot.eq(packet.slot),
        ]
        m.d.sync += self.free.eq(
            (self.free & ~Mux(self.begun, 1 << self.begun_slot, 0))
            | Mux(self.wrote.valid, 1 << self.wrote.payload.slot[:SLOT_BITS], 0)
            | Mux(closes, 1 << packet.slot, 0)
        )

        # What happens when.
        m.submodules.execute = execute = Execute()
        m.d.comb += [
            execute.request.eq(self.request.valid),
            execute.good.eq(admit.good),
            execute.opcode.eq(opcode),
            execute.flagged.eq(flagged(header)),
            execute.open_class.eq(pending.open.bit_select(packet.class_, 1)),
            execute.open_any.eq(pending.open.any()),
            execute.place.eq(answers.there),
            execute.scatter_ready.eq(self.scatter.ready),
            execute.gather_ready.eq(self.gather.ready),
            execute.signal_ready.eq(pending.signal.ready),
            execute.held.eq(answers.held),
            execute.held_error.eq(answers.held_error),
            execute.answered.eq(answers.answered),
            self.request.ready.eq(execute.ready),
            self.scatter.valid.eq(execute.scatter),
            pending.write.eq(execute.scatter & self.scatter.ready),
            self.gather.valid.eq(execute.gather),
            answers.take.eq(execute.gather & self.gather.ready),
            pending.signal.valid.eq(execute.signal),
            answers.answer.eq(execute.answer),
            answers.error.eq(execute.error),
            answers.drop.eq(execute.drop),
            closes.eq(execute.closes),
            self.refused.eq(execute.refused),
            self.adding.eq(execute.adding),
            self.busy.eq(execute.busy | pending.busy | answers.busy | ~self.free.all()),
        ]
        with m.If(execute.asks):
            m.d.sync += found.eq(place)
        return m
