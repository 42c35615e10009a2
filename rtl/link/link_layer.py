"""The link layer: packets in, flits out, and back; all of a port but its lanes."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.layouts import layout
from rtl.base.packet import FOREIGN_BITS
from rtl.contract.link import DLP, FLIT_HEADER, LinkCause
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout
from rtl.link.codec.decoder import Decoder
from rtl.link.codec.encoder import Encoder
from rtl.link.framing.receive_path import ReceivePath
from rtl.link.framing.send_path import SendPath
from rtl.link.packet_side import packet_side
from rtl.link.rules.begun_units import BegunUnits
from rtl.link.rules.flit_sender import FlitSender
from rtl.link.rules.rules import LinkRules

__all__ = ["LinkLayer"]


class LinkLayer(wiring.Component):
    """`packet` in; `request` and `response` out; `o`, `i`: coded flits before scrambling.

    `room`, `room_pair`: which queues (class * 2 + kind) take a longest packet, or two. `i_refuse`: see Decoder.
    `align`, `aligned`, `realign`, `fix`: see LaneReceiver. `sent_payload` strobes when payload flit `sent_number`
    is put on its way.
    `counts`: one for each LinkCause; they stop at their end. A port has no endpoint number: by `foreign`, who takes its
    packets tells how many were for another endpoint, and they are counted.
    Timing: `o` gives a beat in every cycle in which it is ready; `i` takes one in every cycle.
    """

    def __init__(self, cfg: LinkConfig, form: str = "native"):
        self.cfg = cfg
        self.form = form
        super().__init__(
            {
                **packet_side(cfg),
                "o": Out(stream.Signature(beat_layout(cfg))),
                "i_valid": In(1),
                "i": In(beat_layout(cfg)),
                "i_refuse": In(1),
                "align": Out(1),
                "aligned": In(1),
                "realign": In(1),
                "fix_valid": Out(1),
                "fix_lost": Out(1),
                "fix": Out(data.ArrayLayout(data.StructLayout({"hit": 1, "byte": 8}), 3)),
                "clear": Out(1),
                "foreign": In(FOREIGN_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.rules = rules = LinkRules(cfg)
        m.submodules.send = send = SendPath(cfg)
        m.submodules.receive = receive = ReceivePath(cfg)
        m.submodules.sender = sender = FlitSender(cfg)
        m.submodules.begun = begun = BegunUnits(cfg)
        m.submodules.encoder = encoder = Encoder(cfg, form=self.form)
        m.submodules.decoder = decoder = Decoder(cfg, form=self.form)

        m.d.comb += [
            rules.session_init.eq(self.session_init),
            rules.restart.eq(self.restart),
            rules.disabled.eq(self.disabled),
            rules.aligned.eq(self.aligned),
            rules.realign.eq(self.realign),
            self.align.eq(rules.align),
            self.clear.eq(rules.clear),
            self.state.eq(rules.state),
            self.session.eq(rules.session),
            self.partner.eq(rules.partner),
            self.in_flight.eq(rules.in_flight),
        ]

        # Packets to flits.
        dlp = Signal(layout(DLP))
        wiring.connect(m, wiring.flipped(self.packet), send.packet)
        wiring.connect(m, send.o, sender.i)
        wiring.connect(m, sender.o, encoder.i)
        wiring.connect(m, encoder.o, wiring.flipped(self.o))
        m.d.comb += [
            self.room.eq(send.room),
            self.room_pair.eq(send.room_pair),
            *(send.free[account].eq(rules.free[account]) for account in range(cfg.accounts)),
            send.pause.eq(~rules.up),
            send.clear.eq(rules.clear),
            rules.spend.eq(send.spend),
            rules.spend_account.eq(send.account),
            sender.room.eq(rules.room),
            sender.put_index.eq(rules.put_index),
            sender.clear.eq(rules.clear),
            rules.enqueue.eq(sender.enqueue),
            rules.slot.eq(sender.slot),
            rules.may.eq(1),
            sender.payload.eq(rules.tx_payload),
            sender.index.eq(rules.tx_index),
            sender.control.eq(rules.tx_control),
            sender.head.eq(rules.tx_head),
            sender.dlp.eq(rules.tx_dlp),
            dlp.eq(rules.tx_dlp),
            self.sent_payload.eq(sender.slot & rules.tx_payload),
            self.sent_number.eq(dlp.seq),
        ]

        # Flits to packets.
        header = Signal(layout(FLIT_HEADER))
        verdict = Signal()
        kept = Signal()
        m.d.comb += [
            decoder.i_valid.eq(self.i_valid),
            decoder.i.eq(self.i),
            decoder.i_refuse.eq(self.i_refuse),
            verdict.eq(decoder.o_valid & decoder.o.first),
            rules.rx_valid.eq(verdict),
            rules.rx_good.eq(decoder.o_good),
            rules.rx_dlp.eq(decoder.o_dlp),
            rules.rx_head.eq(decoder.o.data[: len(rules.rx_head)]),
            receive.valid.eq(decoder.o_valid & Mux(decoder.o.first, rules.deliver, kept)),
            receive.beat.eq(decoder.o),
            receive.clear.eq(rules.clear),
            rules.freed.eq(receive.freed),
            rules.freed_account.eq(receive.freed_account),
            self.fix_valid.eq(verdict),
            self.fix_lost.eq(~decoder.o_good | rules.pending),
            self.fix.eq(decoder.o_fix),
        ]
        with m.If(verdict):
            m.d.sync += kept.eq(rules.deliver)
        wiring.connect(m, receive.request, wiring.flipped(self.request))
        wiring.connect(m, receive.response, wiring.flipped(self.response))

        # A flit time of this end, for its timers.
        time = Signal(range(cfg.flit_cycles), init=cfg.flit_cycles - 1)
        m.d.sync += time.eq(Mux(time == 0, cfg.flit_cycles - 1, time - 1))
        m.d.comb += rules.tick.eq(time == 0)

        # What the head of a flit that is being stored says about its unit.
        tail = Signal()
        m.d.comb += Value.cast(header).eq(send.o.payload.data[: FLIT_HEADER.width])
        with m.If(send.o.valid & send.o.payload.first):
            m.d.sync += tail.eq(header.tail)
        m.d.comb += [
            begun.enqueue.eq(sender.enqueue),
            begun.tail.eq(tail),
            begun.in_flight.eq(rules.in_flight),
            begun.clear.eq(rules.clear),
        ]
        self._count(m, rules, send, receive, decoder, verdict, begun.begun)
        return m

    def _count(
        self,
        m: Module,
        rules: LinkRules,
        send: SendPath,
        receive: ReceivePath,
        decoder: Decoder,
        verdict: Signal,
        begun: Value,
    ) -> None:
        """Counters that stop at their end."""
        steps: dict[LinkCause, Value] = {cause: rules.causes[cause] for cause in LinkCause}
        steps[LinkCause.UNRESOLVED] = Mux(rules.clear, rules.unresolved + send.cut + begun, 0)
        steps[LinkCause.CORRECTED] = Mux(verdict & decoder.o_good, decoder.o_groups, 0)
        steps[LinkCause.CREDIT_OVERRUN] |= receive.overrun
        steps[LinkCause.FOREIGN] = self.foreign
        steps[LinkCause.BAD_UNIT] = Value.cast(receive.bad_unit)
        steps[LinkCause.BAD_PACKET] = send.bad_packet + receive.bad_packet[0] + receive.bad_packet[1]
        for cause, step in steps.items():
            count = self.counts[cause]
            after = Signal(33, name=f"after_{cause.name.lower()}")
            m.d.comb += after.eq(count + step)
            with m.If(~after[32]):
                m.d.sync += count.eq(after)
