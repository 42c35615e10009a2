"""The link side of a DMA: packets in and out, rows of its movers. Connects its parts."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.dma_port import ENDPOINT_STATUS, SEMAPHORE_UPDATE
from rtl.base.endpoint_number import endpoint_number, has_endpoint
from rtl.base.memory_port import SbufMoverSignature
from rtl.base.packet import PACKET_BEAT
from rtl.contract.config import Config
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import CoreId
from rtl.dma.fabric.endpoint import Endpoint
from rtl.dma.fabric.initiator import Initiator
from rtl.dma.fabric.link_rows import LinkRows
from rtl.dma.fabric.link_staging import LinkStaging
from rtl.dma.fabric.link_status import LinkStatus
from rtl.dma.fabric.packet_receiver import PacketReceiver
from rtl.dma.fabric.packet_sender import PacketSender
from rtl.dma.fabric.packets import TO_SEND, bank_bits, link_config, remote_row
from rtl.dma.layouts import CLASSES, done_layout, row_layout

__all__ = ["LINK_COUNTS", "LINK_PORTS", "WAYS", "Link"]

LINK_PORTS = {
    **{f"{kind}_in": In(stream.Signature(PACKET_BEAT)) for kind in ("request", "response")},
    **{f"{kind}_out": Out(stream.Signature(PACKET_BEAT)) for kind in ("request", "response")},
    "request_room": In(CLASSES),
    "down": In(1),
}
"""What a core shows of it."""

WAYS = ("gather", "scatter")

LINK_COUNTS = {name: Out(field.width) for name, field in ENDPOINT_STATUS}
"""What the core's registers show of it."""


class Link(wiring.Component):
    """`request_in`, `response_in`, `request_out`, `response_out`: the fabric; a response never waits for a request.
    `request_room`: a packet of the class may begin at `request_out`, and one on its way to the port does not change
    that.

    `away_signal`: a packet of AwaySignals, `signalled` when it has left, `away_busy` while there are any.
    `row`, `issued`, `last`, `done`: rows of descriptors with an end in another core (Initiator).
    dma.link_movers pairs of movers of link_config(cfg): `gather[k]` brings bytes of this core to bank k of the staging
    memories of packets that go out, `scatter[k]` writes those of packets that came in. What they read from and write to
    SBUF is here either a staging memory or, at `sbuf[k]`, the groups of partitions of bank k (bank_of).
    `down`: the link is lost; reads under way end with an error.
    `refused`, `refused_address`, `refused_source`: requests not executed, and the first of them; see LinkStatus.
    """

    def __init__(self, cfg: Config):
        self.own = cfg
        self.cfg = link_config(cfg)
        port = SbufMoverSignature(self.cfg)
        n = cfg.dma.link_movers
        super().__init__(
            {
                "clear": In(1),
                "core_id": In(CoreId.BITS),
                **LINK_PORTS,
                **LINK_COUNTS,
                "row": In(stream.Signature(remote_row(cfg))),
                "room": Out(CLASSES).array(2),
                "issued": Out(1),
                "last": Out(1),
                "done": Out(stream.Signature(done_layout(cfg))),
                "signal": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "away_signal": In(stream.Signature(TO_SEND)),
                "signalled": Out(1),
                "away_busy": In(1),
                **{f"{way}_row": Out(stream.Signature(row_layout(self.cfg))).array(n) for way in WAYS},
                **{f"{way}_done": In(stream.Signature(done_layout(self.cfg))).array(n) for way in WAYS},
                **{f"{way}_port": In(port).array(n) for way in WAYS},
                "sbuf": Out(port).array(n),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.requests = requests = PacketReceiver(self.own, by_tag=False)
        m.submodules.responses = responses = PacketReceiver(self.own, by_tag=True)
        m.submodules.ask = ask = PacketSender(self.own, classes=self.own.dma.classes)
        m.submodules.answer = answer = PacketSender(self.own)
        m.submodules.endpoint = endpoint = Endpoint(self.cfg)
        m.submodules.initiator = initiator = Initiator(self.own, self.cfg)
        m.submodules.status = status = LinkStatus()

        connect(m, flipped(self.request_in), requests.i)
        connect(m, flipped(self.response_in), responses.i)
        connect(m, ask.o, flipped(self.request_out))
        connect(m, answer.o, flipped(self.response_out))
        connect(m, requests.o, endpoint.request)
        connect(m, responses.o, initiator.response)
        connect(m, endpoint.send, answer.send)
        connect(m, initiator.send, ask.send)
        connect(m, endpoint.signal, flipped(self.signal))
        connect(m, flipped(self.away_signal), initiator.signal)
        connect(m, flipped(self.row), initiator.row)
        connect(m, initiator.done, flipped(self.done))
        own, numbered = endpoint_number(self.own, self.core_id), has_endpoint(self.own, self.core_id)
        m.d.comb += [
            endpoint.clear.eq(self.clear),
            endpoint.core_id.eq(self.core_id),
            endpoint.begun.eq(requests.began),
            endpoint.begun_slot.eq(requests.slot),
            endpoint.sent.eq(answer.sent),
            endpoint.sent_slot.eq(answer.slot),
            requests.usable.eq(endpoint.free),
            initiator.core_id.eq(self.core_id),
            initiator.down.eq(self.down),
            self.signalled.eq(ask.signalled),
            initiator.began.eq(responses.began),
            initiator.began_slot.eq(responses.slot),
            initiator.sent.eq(ask.sent),
            initiator.sent_slot.eq(ask.slot),
            responses.usable.eq(initiator.expected),
            responses.round.eq(initiator.round),
            *(mine.eq(its) for mine, its in zip(self.room, initiator.room, strict=True)),
            ask.room.eq(self.request_room),
            answer.room.eq(1),
            self.issued.eq(initiator.issued),
            self.last.eq(initiator.last),
            requests.endpoint.eq(own),
            responses.endpoint.eq(own),
            requests.numbered.eq(numbered),
            responses.numbered.eq(numbered),
            status.refused.eq(endpoint.refused),
            status.foreign.eq(endpoint.foreign + responses.foreign),
            status.address.eq(requests.o.payload.header.address),
            status.source.eq(requests.o.payload.header.source),
            status.failed.eq(endpoint.failed),
            status.dropped.eq(responses.dropped),
            self.refused.eq(status.refused_count),
            self.refused_address.eq(status.first_address),
            self.refused_source.eq(status.first_source),
            self.failed.eq(status.failed_count),
            self.dropped.eq(status.dropped_count),
            self.foreign.eq(status.foreign_count),
            self.busy.eq(
                self.away_busy
                | requests.busy
                | responses.busy
                | ask.busy
                | answer.busy
                | endpoint.busy
                | initiator.busy
            ),
        ]

        # What belongs to a response goes first. Pieces of descriptors are sent in order, the rest ends as it comes.
        gather = LinkRows(self.own, self.cfg, ordered=True)
        scatter = LinkRows(self.own, self.cfg)
        m.submodules.gather, m.submodules.scatter = gather, scatter
        for rows, way, first, second, ends in (
            (gather, "gather", endpoint.gather, initiator.gather, (initiator.gathered, endpoint.read)),
            (scatter, "scatter", initiator.scatter, endpoint.scatter, (endpoint.wrote, initiator.written)),
        ):
            connect(m, first, rows.first)
            connect(m, second, rows.second)
            for kind, end in enumerate(ends):
                connect(m, rows.end[kind], end)
            for k in range(self.own.dma.link_movers):
                connect(m, rows.row[k], flipped(getattr(self, f"{way}_row")[k]))
                connect(m, flipped(getattr(self, f"{way}_done")[k]), rows.done[k])
        self._stage(m, endpoint, (ask, answer), (requests, responses))
        return m

    def _stage(
        self,
        m: Module,
        endpoint: Endpoint,
        senders: tuple[PacketSender, PacketSender],
        receivers: tuple[PacketReceiver, PacketReceiver],
    ) -> None:
        """The staging memories, which are in senders and receivers, to the movers."""
        header = endpoint.request.payload.header
        for k in range(self.own.dma.link_movers):
            m.submodules[f"staging{k}"] = staging = LinkStaging(self.cfg)
            connect(m, flipped(self.gather_port[k]), staging.gather)
            connect(m, flipped(self.scatter_port[k]), staging.scatter)
            connect(m, staging.sbuf, flipped(self.sbuf[k]))
            m.d.comb += [
                staging.adding.eq(endpoint.adding & (endpoint.adding_slot[: bank_bits(self.own)] == k)),
                staging.adding_slot.eq(endpoint.adding_slot),
                staging.wide.eq((header.opcode == PacketOpcode.FETCH_ADD) & (header.length_bytes == 8)),
            ]
            for kind, (sender, receiver) in enumerate(zip(senders, receivers, strict=True)):
                m.d.comb += [
                    sender.write_en[k].eq(staging.write_en[kind]),
                    sender.write_unit[k].eq(staging.write_unit),
                    sender.write_data[k].eq(staging.write_data),
                    receiver.read_en[k].eq(staging.read_en[kind]),
                    receiver.read_unit[k].eq(staging.read_unit),
                    staging.read_data[kind].eq(receiver.read_data[k]),
                ]
