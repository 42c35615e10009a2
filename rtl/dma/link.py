"""The link side of a DMA: packets in and out, two movers' rows. Connects its parts."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.dma_port import SEMAPHORE_UPDATE
from rtl.base.memory_port import SbufMoverSignature
from rtl.base.packet import PACKET_BEAT
from rtl.base.plant import passed_on, planted
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.contract.link import ENDPOINT_BITS, PacketOpcode
from rtl.contract.memmap import CoreId
from rtl.dma.endpoint import Endpoint
from rtl.dma.initiator import Initiator
from rtl.dma.layouts import done_layout, row_layout
from rtl.dma.link_status import LinkStatus
from rtl.dma.packet_receiver import PacketReceiver
from rtl.dma.packet_sender import PacketSender
from rtl.dma.packets import SLOT_BITS, UNIT_BITS, link_config, remote_row

__all__ = ["LINK_PORTS", "Link"]

LINK_PORTS = {
    **{f"{kind}_in": In(stream.Signature(PACKET_BEAT)) for kind in ("request", "response")},
    **{f"{kind}_out": Out(stream.Signature(PACKET_BEAT)) for kind in ("request", "response")},
    "refused": Out(32),
    "refused_address": Out(64),
    "refused_source": Out(ENDPOINT_BITS),
    "down": In(1),
    "failed": Out(32),
    "dropped": Out(32),
}
"""What Dma shows of it."""

_UNIT = SLOT_BITS + UNIT_BITS


_OWN = {9: "a fetch-add of 8 bytes loses its carry"}


class Link(wiring.Component):
    """`request_in`, `response_in`, `request_out`, `response_out`: the fabric; a response never waits for a request.

    `row`, `issued`, `last`, `done`: rows of descriptors with an end in another core (Initiator).
    Two movers of link_config(cfg): `gather` brings bytes of this core to the staging memories of packets that
    go out, `scatter` writes those of packets that came in. What they read from and write to SBUF is here either a
    staging memory or, at `sbuf`, SBUF itself.
    `down`: the link is lost; reads under way end with an error.
    `refused`, `refused_address`, `refused_source`: requests not executed, and the first of them.
    """

    FAULTS = {**Endpoint.FAULTS, 6: Initiator.FAULTS[1], 7: Initiator.FAULTS[2], 8: PacketSender.FAULTS[1], **_OWN}

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.own = cfg
        self.cfg = link_config(cfg)
        self.plant = plant
        port = SbufMoverSignature(self.cfg)
        super().__init__(
            {
                "start": In(1),
                "core_id": In(CoreId.BITS),
                **LINK_PORTS,
                "row": In(stream.Signature(remote_row(cfg))),
                "issued": Out(1),
                "last": Out(1),
                "done": Out(stream.Signature(done_layout(cfg))),
                "signal": Out(stream.Signature(SEMAPHORE_UPDATE)),
                **{f"{way}_row": Out(stream.Signature(row_layout(self.cfg))) for way in ("gather", "scatter")},
                **{f"{way}_done": In(stream.Signature(done_layout(self.cfg))) for way in ("gather", "scatter")},
                **{f"{way}_port": In(port) for way in ("gather", "scatter")},
                "sbuf": Out(port),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.requests = requests = PacketReceiver(by_tag=False)
        m.submodules.responses = responses = PacketReceiver(by_tag=True)
        m.submodules.ask = ask = PacketSender(passed_on(self.plant, 8))
        m.submodules.answer = answer = PacketSender(passed_on(self.plant, 8))
        m.submodules.endpoint = endpoint = Endpoint(self.cfg, passed_on(self.plant, 1, 2, 3, 4, 5))
        m.submodules.initiator = initiator = Initiator(self.own, self.cfg, passed_on(self.plant, 6, 7))
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
        connect(m, flipped(self.row), initiator.row)
        connect(m, initiator.done, flipped(self.done))
        m.d.comb += [
            endpoint.start.eq(self.start),
            endpoint.core_id.eq(self.core_id),
            endpoint.begun.eq(requests.began),
            endpoint.begun_slot.eq(requests.slot),
            endpoint.sent.eq(answer.sent),
            endpoint.sent_slot.eq(answer.slot),
            requests.usable.eq(endpoint.free),
            initiator.core_id.eq(self.core_id),
            initiator.down.eq(self.down),
            initiator.began.eq(responses.began),
            initiator.began_slot.eq(responses.slot),
            initiator.sent.eq(ask.sent),
            initiator.sent_slot.eq(ask.slot),
            responses.usable.eq(initiator.expected),
            responses.round.eq(initiator.round),
            self.issued.eq(initiator.issued),
            self.last.eq(initiator.last),
            status.refused.eq(endpoint.refused),
            status.address.eq(requests.o.payload.header.address),
            status.source.eq(requests.o.payload.header.source),
            status.failed.eq(endpoint.failed),
            status.dropped.eq(responses.dropped),
            self.refused.eq(status.refused_count),
            self.refused_address.eq(status.first_address),
            self.refused_source.eq(status.first_source),
            self.failed.eq(status.failed_count),
            self.dropped.eq(status.dropped_count),
            self.busy.eq(requests.busy | responses.busy | ask.busy | answer.busy | endpoint.busy | initiator.busy),
        ]

        # Rows: what belongs to a response goes first. Their ends by the kind in the slot.
        for way, first, second, ends in (
            ("gather", endpoint.gather, initiator.gather, (initiator.gathered, endpoint.read)),
            ("scatter", initiator.scatter, endpoint.scatter, (endpoint.wrote, initiator.written)),
        ):
            row = getattr(self, f"{way}_row")
            done = getattr(self, f"{way}_done")
            kind = done.payload.slot[SLOT_BITS]
            m.d.comb += [
                row.valid.eq(first.valid | second.valid),
                row.payload.eq(Mux(first.valid, first.payload, second.payload)),
                first.ready.eq(row.ready),
                second.ready.eq(row.ready & ~first.valid),
                ends[0].valid.eq(done.valid & ~kind),
                ends[1].valid.eq(done.valid & kind),
                done.ready.eq(Mux(kind, ends[1].ready, ends[0].ready)),
            ]
            for end in ends:
                m.d.comb += end.payload.eq(done.payload)
        self._gather(m, ask, answer, endpoint)
        self._scatter(m, requests, responses, endpoint)
        return m

    @staticmethod
    def _unit(lane: Value, pair: Value) -> Value:
        """The place in a staging memory, and above it the kind, of a mover's SBUF address."""
        return Cat(pair, lane)[: _UNIT + 1]

    def _gather(self, m: Module, ask: PacketSender, answer: PacketSender, endpoint: Endpoint) -> None:
        """SBUF, or what came from HBM, to the staging memories; for an addition to `found` too."""
        port = self.gather_port
        unit = Signal(_UNIT + 1, name="gather_unit")
        m.submodules.found = self.found = found = Ram(128, 1 << UNIT_BITS)
        m.d.comb += [
            unit.eq(self._unit(port.write_lane, port.write_pair)),
            port.write_ready.eq(1),
            ask.write_en.eq(port.write_valid & ~unit[_UNIT]),
            answer.write_en.eq(port.write_valid & unit[_UNIT]),
            found.write_en.eq(answer.write_en & endpoint.adding),
            found.write_address.eq(unit[:UNIT_BITS]),
            found.write_mask.eq(1),
            found.write_data.eq(port.write_data),
            self.sbuf.read_valid.eq(port.read_valid),
            self.sbuf.read_lane.eq(port.read_lane),
            self.sbuf.read_pair.eq(port.read_pair),
            port.read_ready.eq(self.sbuf.read_ready),
            port.read_data.eq(self.sbuf.read_data),
            port.read_data_valid.eq(self.sbuf.read_data_valid),
        ]
        for sender in (ask, answer):
            m.d.comb += [sender.write_unit.eq(unit), sender.write_data.eq(port.write_data)]

    def _scatter(self, m: Module, requests: PacketReceiver, responses: PacketReceiver, endpoint: Endpoint) -> None:
        """The staging memories to SBUF or HBM; an addition's payload with `found` added."""
        port = self.scatter_port
        unit = Signal(_UNIT + 1, name="scatter_unit")
        kind = Signal()  # of the unit that is shown now
        adds = Signal()
        wide = Signal()
        found = self.found
        m.d.comb += [
            unit.eq(self._unit(port.read_lane, port.read_pair)),
            port.read_ready.eq(1),
            requests.read_en.eq(port.read_valid & ~unit[_UNIT]),
            responses.read_en.eq(port.read_valid & unit[_UNIT]),
            requests.read_unit.eq(unit),
            responses.read_unit.eq(unit),
            found.read_en.eq(requests.read_en),
            found.read_address.eq(unit[:UNIT_BITS]),
            self.sbuf.write_valid.eq(port.write_valid),
            self.sbuf.write_lane.eq(port.write_lane),
            self.sbuf.write_pair.eq(port.write_pair),
            self.sbuf.write_data.eq(port.write_data),
            self.sbuf.write_bytes.eq(port.write_bytes),
            port.write_ready.eq(self.sbuf.write_ready),
        ]
        m.d.sync += port.read_data_valid.eq(port.read_valid)
        with m.If(port.read_valid):
            m.d.sync += [
                kind.eq(unit[_UNIT]),
                adds.eq(endpoint.adding & ~unit[_UNIT] & (unit[UNIT_BITS:_UNIT] == endpoint.adding_slot)),
            ]
        header = requests.o.payload.header
        m.d.comb += wide.eq((header.opcode == PacketOpcode.FETCH_ADD) & (header.length_bytes == 8))
        operand = requests.read_data
        sums: list[Value] = []
        low = Signal(33)
        m.d.comb += low.eq(operand[:32] + found.read_data[:32])
        sums.append(low[:32])
        for n in range(1, 4):
            carry = low[32] & wide & ~planted(self.plant, 9) if n == 1 else 0
            sums.append((operand.word_select(n, 32) + found.read_data.word_select(n, 32) + carry)[:32])
        m.d.comb += port.read_data.eq(Mux(kind, responses.read_data, Mux(adds, Cat(sums), operand)))
