"""One port of a switch: its link, the buffer of its input, and the retry buffer of its output."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import CRC_BYTES, ENDPOINT_BITS, FEC_BYTES, FLIT_HEADER_BYTES, PACKET_HEADER, LinkCause
from rtl.contract.switch_config import SwitchConfig
from rtl.contract.switch_registers import SwitchCause
from rtl.link.beat import beat_layout
from rtl.link.codec.codec import FIXES
from rtl.link.codec.decoder import Decoder
from rtl.link.codec.encoder import Encoder
from rtl.link.framing.framing import FLIT_HEADER_LAYOUT
from rtl.link.rules.rules import LinkRules
from rtl.switch.beat import parity_of, transfer_beat
from rtl.switch.input.ingress import Ingress
from rtl.switch.output.egress import Egress
from rtl.switch.output.output_buffer import OutputBuffer
from rtl.switch.port_registers import PortRegisters
from rtl.switch.routes import Routes
from rtl.switch.row import connect_row, row_side

__all__ = ["SwitchPort"]

_CODES = 8 * (CRC_BYTES + FEC_BYTES)
_LINK = ("session_init", "restart", "disabled", "aligned", "realign")


class SwitchPort(wiring.Component):
    """Coded flits `i`, `o` on one side, the crossbar on the other.

    Link: `session_init`, `restart`, `disabled`, `aligned`, `realign`, `align`, `i_refuse`, `fix`: see LinkLayer.
    Towards the crossbar: `slot` to `departure` are those of Ingress; `ready` to `arrival` those of Egress.
    `alive_outputs`, `same_outputs`: which have a session, and which are in this port's `partition`.
    `route_write`: `route` becomes that of `route_endpoint`. `flip`: a bit of what is stored now changes.
    `address`, `value`: see PortRegisters.
    """

    def __init__(self, cfg: SwitchConfig, form: str = "native"):
        self.cfg = cfg
        self.form = form
        link = cfg.link
        n, queues = cfg.outputs, link.queues
        super().__init__(
            {
                "session_init": In(16),
                "restart": In(1),
                "disabled": In(1),
                "aligned": In(1),
                "realign": In(1),
                "align": Out(1),
                "clear": Out(1),
                "fix_valid": Out(1),
                "fix": Out(FIXES),
                "i_valid": In(1),
                "i": In(beat_layout(link)),
                "i_refuse": In(1),
                "o": Out(stream.Signature(beat_layout(link))),
                **row_side(cfg),
                "ready": Out(queues),
                "idle_ready": Out(queues),
                "granted": In(1),
                "doomed": In(1),
                "granted_queue": In(range(queues)),
                "arrives": In(1),
                "arrival": In(transfer_beat(link)),
                "alive": Out(1),
                "alive_outputs": In(n),
                "same_outputs": In(n),
                "partition": In(4),
                "route_write": In(1),
                "route_endpoint": In(ENDPOINT_BITS),
                "route": In(8),
                "flip": In(1),
                "state": Out(4),
                "address": In(8),
                "value": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link = self.cfg.link
        m.submodules.rules = rules = LinkRules(link)
        m.submodules.decoder = decoder = Decoder(link, form=self.form)
        m.submodules.encoder = encoder = Encoder(link, form=self.form)
        m.submodules.routes = routes = Routes(self.cfg)
        m.submodules.ingress = ingress = Ingress(self.cfg)
        m.submodules.egress = egress = Egress(link)
        m.submodules.buffer = buffer = OutputBuffer(link)
        m.submodules.registers = registers = PortRegisters(link)

        # A flit time of this end, for its timers.
        time = Signal(range(link.flit_cycles), init=link.flit_cycles - 1)
        m.d.sync += time.eq(Mux(time == 0, link.flit_cycles - 1, time - 1))
        m.d.comb += [
            *(getattr(rules, name).eq(getattr(self, name)) for name in _LINK),
            rules.tick.eq(time == 0),
            self.align.eq(rules.align),
            self.clear.eq(rules.clear),
            self.state.eq(rules.state),
        ]
        with m.If(rules.clear):
            m.d.sync += self.alive.eq(0)
        with m.Elif(rules.up):
            m.d.sync += self.alive.eq(1)

        refused = self._input(m, rules, decoder, routes, ingress)
        self._output(m, rules, egress, buffer, encoder)
        steps: dict[LinkCause, Value] = {cause: rules.causes[cause] for cause in LinkCause}
        steps[LinkCause.UNRESOLVED] = Mux(
            rules.clear & ~fault("what a retry buffer held is not told"), rules.unresolved, 0
        )
        steps[LinkCause.CORRECTED] = Mux(self.fix_valid & decoder.o_good, decoder.o_groups, 0)
        steps[LinkCause.CREDIT_OVERRUN] |= ingress.overrun
        steps[LinkCause.BAD_UNIT] = ingress.bad_unit
        m.d.comb += [
            *(registers.link_steps[cause].eq(step) for cause, step in steps.items()),
            registers.steps[SwitchCause.HOLE].eq(refused & routes.hole),
            registers.steps[SwitchCause.PARTITION].eq(refused & routes.foreign),
            registers.steps[SwitchCause.DEAD].eq(refused & routes.dead),
            registers.steps[SwitchCause.DROPPED].eq(ingress.dropped_flits),
            registers.steps[SwitchCause.ANSWERED].eq(ingress.answered),
            registers.steps[SwitchCause.LATE].eq(
                egress.dropped
                & ~fault("what an output drops is not told")
                & ~fault("an output swallows its units and tells nobody")
            ),
            registers.steps[SwitchCause.PARITY].eq(buffer.bad_parity),
            registers.steps[SwitchCause.BAD_FLITS].eq(ingress.bad_flits),
            registers.refused.eq(refused),
            registers.endpoint.eq(ingress.endpoint),
            registers.packet.eq(decoder.o.data[8 * FLIT_HEADER_BYTES :][: PACKET_HEADER.width]),
            registers.state.eq(rules.state),
            registers.alive.eq(self.alive),
            registers.session.eq(rules.session),
            registers.partner.eq(rules.partner),
            registers.partition.eq(self.partition),
            registers.disabled.eq(self.disabled),
            registers.in_flight.eq(rules.in_flight),
            registers.address.eq(self.address),
            self.value.eq(registers.value),
        ]
        return m

    def _input(self, m: Module, rules: LinkRules, decoder: Decoder, routes: Routes, ingress: Ingress) -> Signal:
        """From the wire to the crossbar. Returns whether a unit begins to arrive that is refused."""
        verdict, kept, accepted, refused = Signal(), Signal(), Signal(), Signal()
        header = data.View(FLIT_HEADER_LAYOUT, decoder.o.data[: FLIT_HEADER_LAYOUT.size])
        m.d.comb += [
            decoder.i_valid.eq(self.i_valid),
            decoder.i.eq(self.i),
            decoder.i_refuse.eq(self.i_refuse),
            verdict.eq(decoder.o_valid & decoder.o.first),
            rules.rx_valid.eq(verdict),
            rules.rx_good.eq(decoder.o_good),
            rules.rx_dlp.eq(decoder.o_dlp),
            rules.rx_head.eq(decoder.o.data),
            self.fix_valid.eq(verdict),
            self.fix.eq(decoder.o_fix),
            accepted.eq(decoder.o_valid & Mux(decoder.o.first, rules.deliver, kept)),
            ingress.valid.eq(accepted),
            ingress.beat.first.eq(decoder.o.first),
            ingress.beat.last.eq(decoder.o.last),
            ingress.beat.data.eq(decoder.o.data),
            ingress.beat.parity.eq(parity_of(decoder.o.data)),
            ingress.clear.eq(rules.clear),
            ingress.flip.eq(self.flip),
            rules.freed.eq(ingress.freed),
            rules.freed_account.eq(ingress.freed_account),
            routes.endpoint.eq(ingress.endpoint),
            routes.alive.eq(self.alive_outputs),
            routes.same.eq(self.same_outputs),
            routes.write.eq(self.route_write),
            routes.write_endpoint.eq(self.route_endpoint),
            routes.write_route.eq(self.route),
            ingress.route.eq(routes.route),
            ingress.refused.eq(routes.refused),
            refused.eq(accepted & decoder.o.first & header.head & routes.refused),
        ]
        connect_row(m, self, ingress)
        with m.If(verdict):
            m.d.sync += kept.eq(rules.deliver)
        return refused

    def _output(self, m: Module, rules: LinkRules, egress: Egress, buffer: OutputBuffer, encoder: Encoder) -> None:
        """From the crossbar to the wire."""
        spoils = Signal()  # the beat in the encoder is to have wrong codes
        m.d.comb += [
            egress.granted.eq(self.granted),
            egress.doomed.eq(self.doomed | fault("an output swallows its units and tells nobody")),
            egress.queue.eq(self.granted_queue),
            egress.i_valid.eq(self.arrives),
            egress.i.eq(self.arrival),
            egress.up.eq(rules.up),
            egress.alive.eq(self.alive),
            egress.clear.eq(rules.clear),
            egress.room.eq(rules.room),
            egress.in_flight.eq(rules.in_flight),
            *(egress.free[account].eq(rules.free[account]) for account in range(self.cfg.link.accounts)),
            rules.spend.eq(egress.spend),
            rules.spend_account.eq(egress.account),
            self.ready.eq(egress.ready),
            self.idle_ready.eq(egress.idle_ready),
            buffer.i_valid.eq(egress.o_valid),
            *(buffer.i[part].eq(self.arrival[part]) for part in ("first", "last", "data", "parity")),
            buffer.header.eq(egress.header),
            buffer.put_index.eq(rules.put_index),
            buffer.clear.eq(rules.clear),
            rules.enqueue.eq(buffer.enqueue),
            rules.slot.eq(buffer.slot),
            rules.may.eq(1),
            buffer.payload.eq(rules.tx_payload),
            buffer.index.eq(rules.tx_index),
            buffer.control.eq(rules.tx_control),
            buffer.head.eq(rules.tx_head),
            buffer.dlp.eq(rules.tx_dlp),
        ]
        wiring.connect(m, buffer.o, encoder.i)
        with m.If(encoder.i.valid & encoder.i.ready):
            m.d.sync += spoils.eq(buffer.spoil)
        wrong = Cat(encoder.o.payload.data[:-_CODES], ~encoder.o.payload.data[-_CODES:])
        m.d.comb += [
            self.o.valid.eq(encoder.o.valid),
            encoder.o.ready.eq(self.o.ready),
            self.o.payload.eq(encoder.o.payload),
            self.o.payload.data.eq(Mux(spoils & encoder.o.payload.last, wrong, encoder.o.payload.data)),
        ]
