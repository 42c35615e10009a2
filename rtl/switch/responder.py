"""The last row and column of a switch: it takes refused units that hold reads, and answers these with errors."""

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.layouts import layout
from rtl.contract.link import ENDPOINT_BITS, PACKET_HEADER, UNIT_FLITS_MAX, PacketOpcode
from rtl.contract.switch_config import SwitchConfig
from rtl.link.framing.receive_path import ReceivePath
from rtl.link.framing.send_path import SendPath
from rtl.switch.beat import parity_of, transfer_beat
from rtl.switch.input.ingress import Ingress
from rtl.switch.routes import Routes
from rtl.switch.row import connect_row, row_side
from rtl.switch.sound_units import SoundUnits

__all__ = ["Responder"]

_RESERVE_FLITS = 2 * UNIT_FLITS_MAX


class Responder(wiring.Component):
    """A row of the crossbar like a port's (`slot` to `departure`), and a column that listens to others.

    `offers`: the column of which a unit may begin: its own one, or one of an output that is `dead`, whose units would
    wait for ever; they take turns. `granted`: by column, a unit begins; with it, `takes`: it is the responder's.
    `arrives`, `arrivals`: what all columns show.
    Every READ and FETCH_ADD that comes is answered with an ERROR_RESPONSE, as by the endpoint it was for (`answered`);
    everything else ends here. A flit with a wrong byte (`bad_parity`) takes its unit with it: no answer to that.
    `unsent_flits`: of answers that are dropped, for there is no way back.
    `read_endpoint`, `read_route`: the route of an endpoint, a cycle later.
    Timing: `offers` comes from registers.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        n = cfg.outputs
        super().__init__(
            {
                **row_side(cfg),
                "alive_outputs": In(n),
                "same_outputs": In(n),
                "route_write": In(1),
                "route_endpoint": In(ENDPOINT_BITS),
                "route": In(8),
                "dead": In(n),
                "offers": Out(n),
                "granted": In(n),
                "takes": Out(n),
                "arrives": In(n),
                "arrivals": In(data.ArrayLayout(transfer_beat(cfg.link), n)),
                "bad_parity": Out(1),
                "answered": Out(1),
                "unsent_flits": Out(range(UNIT_FLITS_MAX + 1)),
                "read_endpoint": In(ENDPOINT_BITS),
                "read_route": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        n, link = cfg.outputs, cfg.link
        m.submodules.sound = sound = SoundUnits(link)
        m.submodules.receive = receive = ReceivePath(link)
        m.submodules.send = send = SendPath(link)

        # The column listened to. A unit is granted in the slot after the offer, if at all.
        turn = Signal(range(n), init=n - 1)
        offered, late, busy = Signal(), Signal(), Signal()
        held = Signal(range(link.pool_flits + 1))
        own = Const(1 << (n - 1), n)
        candidates = Mux(
            fault("dead outputs have no turn"),
            own,
            self.dead | own | fault("units of outputs that are not dead are asked for").replicate(n),
        )
        offers = Signal()  # while nobody else gives out units for the column
        here = Signal(transfer_beat(link))
        came = Signal()
        tail = Signal()
        m.d.comb += [
            here.eq(Array(self.arrivals[o] for o in range(n))[turn]),
            came.eq(
                (busy | fault("beats of other units are taken while no unit comes")) & self.arrives.bit_select(turn, 1)
            ),
            tail.eq(came & here.last & here.tail),
            offers.eq(offered & candidates.bit_select(turn, 1)),
            self.offers.eq(Mux(offers, 1 << turn, 0)),
            self.takes.eq(Mux(late, 1 << turn, 0)),
            sound.valid.eq(came),
            sound.i.eq(here),
            self.bad_parity.eq(sound.bad_parity),
            receive.valid.eq(sound.o_valid),
            receive.beat.eq(sound.o),
        ]
        dropped = Mux(fault("what is dropped keeps its room"), 0, sound.dropped_flits)
        m.d.sync += held.eq(held + (came & here.first) - receive.freed - dropped)
        after = Mux(turn == n - 1, 0, turn + 1)
        with m.If((late | fault("what is granted to another output is taken too")) & self.granted.bit_select(turn, 1)):
            m.d.sync += [busy.eq(1), late.eq(0)]
        with m.Elif(busy):
            with m.If(tail):
                m.d.sync += [busy.eq(0), turn.eq(after)]
        with m.Elif(self.slot):
            with m.If(offered):  # captured now: granted with the next slot, or not
                m.d.sync += [offered.eq(0), late.eq(offers)]
            with m.Elif(late):
                m.d.sync += [late.eq(0), turn.eq(after)]
        with m.Elif(~offered & ~late):
            with m.If(~candidates.bit_select(turn, 1)):
                m.d.sync += turn.eq(after)
            with m.Elif(
                (held + _RESERVE_FLITS <= link.pool_flits) | fault("a unit is offered though there is no room for it")
            ):
                m.d.sync += offered.eq(1)

        self._answer(m, receive, send)
        self._send(m, send)
        return m

    def _answer(self, m: Module, receive: ReceivePath, send: SendPath) -> None:
        """A packet of a header for each request that waits for an answer."""
        asked = receive.request.payload
        header = data.View(layout(PACKET_HEADER), asked.data[: PACKET_HEADER.width])
        answer = Signal(layout(PACKET_HEADER))
        wanted = Signal()
        m.d.comb += [
            wanted.eq(
                receive.request.valid
                & asked.first
                & (
                    (header.opcode == PacketOpcode.READ)
                    | ((header.opcode == PacketOpcode.FETCH_ADD) & ~fault("a FETCH_ADD is not answered"))
                )
            ),
            answer.opcode.eq(PacketOpcode.ERROR_RESPONSE),
            answer.tag.eq(header.tag),
            answer.source.eq(Mux(fault("an answer comes from who asked"), header.source, asked.endpoint)),
            answer.address.eq(header.address),
            send.packet.valid.eq(wanted & send.room.bit_select(asked.class_ << 1 | 1, 1)),
            send.packet.payload.first.eq(1),
            send.packet.payload.last.eq(1),
            send.packet.payload.class_.eq(Mux(fault("an answer is of the lowest class"), 0, asked.class_)),
            send.packet.payload.endpoint.eq(header.source),
            send.packet.payload.data.eq(answer),
            receive.request.ready.eq(~wanted | (send.packet.valid & send.packet.ready)),
            receive.response.ready.eq(1),
            self.answered.eq(send.packet.valid & send.packet.ready),
        ]

    def _send(self, m: Module, send: SendPath) -> None:
        """Answers as units of the responder's own row."""
        cfg = self.cfg
        m.submodules.routes = routes = Routes(cfg, read_back=True)
        m.submodules.ingress = ingress = Ingress(self.cfg)
        waits = Signal(range(cfg.link.pool_flits + 1))
        room = Signal()
        m.d.sync += [
            waits.eq(waits + (ingress.valid & ingress.beat.first) - ingress.freed),
            room.eq(waits + _RESERVE_FLITS <= cfg.link.pool_flits),
        ]
        m.d.comb += [
            *(send.free[account].eq(Mux(room, UNIT_FLITS_MAX, 0)) for account in range(cfg.link.accounts)),
            send.o.ready.eq(1),
            ingress.valid.eq(send.o.valid),
            ingress.beat.first.eq(send.o.payload.first),
            ingress.beat.last.eq(send.o.payload.last),
            ingress.beat.data.eq(send.o.payload.data),
            ingress.beat.parity.eq(parity_of(send.o.payload.data)),
            routes.endpoint.eq(ingress.endpoint),
            routes.alive.eq(self.alive_outputs),
            routes.same.eq(self.same_outputs),
            routes.write.eq(self.route_write),
            routes.write_endpoint.eq(self.route_endpoint),
            routes.write_route.eq(self.route),
            routes.read_endpoint.eq(self.read_endpoint),
            self.read_route.eq(routes.read_route),
            ingress.route.eq(routes.route),
            ingress.refused.eq(routes.refused),
            self.unsent_flits.eq(ingress.dropped_flits),
        ]
        connect_row(m, self, ingress)
