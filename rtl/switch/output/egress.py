"""What an output takes from the crossbar: whether it may, which credits that costs, and what it drops."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.framing.framing import FLIT_HEADER_LAYOUT
from rtl.link.rules.credit_sender import COUNT_BITS
from rtl.switch.beat import transfer_beat

__all__ = ["Egress"]


class Egress(wiring.Component):
    """`ready`: queues (class * 2 + kind) of which a unit may begin, with what is `granted` in this cycle counted;
    `idle_ready`: of which one may begin now, if nothing is granted or under way.

    A unit is granted as if it had UNIT_FLITS_MAX flits; what it did not need is given back with its tail. Its flits
    come as `i` later, in the order of the grants. While the output is `alive` (its session has been UP and has not
    ended) they are stored (`o_valid`, `header` for this hop) and charged (`spend`, `account`: the shared account while
    it has any); else they are dropped, a `dropped` a flit, as are those of a unit that was granted as `doomed`.
    `room`, `in_flight`, `free`: of LinkRules.
    Timing: `ready` is combinational with `granted`, `idle_ready` comes from registers; `o_valid`, `header`, `spend` and
    `account` are combinational with `i`.
    """

    def __init__(self, cfg: LinkConfig):
        self.link = link = cfg
        super().__init__(
            {
                "ready": Out(link.queues),
                "idle_ready": Out(link.queues),
                "granted": In(1),
                "doomed": In(1),
                "queue": In(range(link.queues)),
                "i_valid": In(1),
                "i": In(transfer_beat(link)),
                "o_valid": Out(1),
                "header": Out(FLIT_HEADER_LAYOUT),
                "dropped": Out(1),
                "up": In(1),
                "alive": In(1),
                "clear": In(1),
                "room": In(1),
                "in_flight": In(range(link.window_flits + 2)),
                "free": In(data.ArrayLayout(COUNT_BITS, link.accounts)),
                "spend": Out(1),
                "account": Out(range(link.accounts)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link = self.link
        granted_queue = Signal.like(self.queue)
        queue = Signal.like(self.queue)  # of the unit that arrives
        owed = Signal(range(2 * UNIT_FLITS_MAX + 1))  # flits granted that have not arrived
        due = Signal.like(owed)
        arrives = Signal()
        flits = Signal(range(UNIT_FLITS_MAX))  # of the unit that arrives, before this one
        m.d.comb += [
            due.eq(
                Mux(
                    fault("flits that were granted and have not arrived are forgotten"),
                    0,
                    owed + Mux(self.granted, UNIT_FLITS_MAX, 0),
                )
            ),
            arrives.eq(self.i_valid & self.i.first),
            granted_queue.eq(Mux(self.granted, self.queue, queue)),
        ]
        # A flit may come in the cycle after its grant, and the next grant with the last flit of the unit before.
        unused = Mux(fault("what a unit was granted and did not need is not given back"), 0, UNIT_FLITS_MAX - 1 - flits)
        m.d.sync += owed.eq(due - Mux(arrives, 1 + Mux(self.i.tail, unused, 0), 0))
        doomed = Signal()
        with m.If(self.granted):
            m.d.sync += [queue.eq(self.queue), doomed.eq(self.doomed & ~fault("a doomed unit is stored in the egress"))]
        with m.If(arrives):
            m.d.sync += flits.eq(Mux(self.i.tail, 0, flits + 1))

        # Whether a unit may begin
        sendable, idle = Signal(), Signal()
        m.d.comb += [
            sendable.eq(self.up & self.room & (self.in_flight + due + (UNIT_FLITS_MAX + 1) <= link.window_flits)),
            idle.eq(self.up & self.room & (owed == 0) & (self.in_flight + UNIT_FLITS_MAX < link.window_flits)),
        ]
        for q in range(link.queues):
            own, shared = self.free[q], self.free[link.queues + q % 2]
            together = Signal(name=f"together_{q}")
            m.d.comb += together.eq(own + shared >= UNIT_FLITS_MAX)
            enough = (
                (shared >= due + UNIT_FLITS_MAX)
                | ((due == 0) & together)
                | ((granted_queue != q) & (own >= UNIT_FLITS_MAX))
            )
            m.d.comb += [
                self.ready[q].eq(sendable & (enough | fault("an egress lets a unit begin without credits"))),
                self.idle_ready[q].eq(idle & together),
            ]

        # What arrives. A new session takes longer to come up than a unit to arrive, so none is cut and goes on in it.
        kept = Signal()
        keeps = Signal()
        m.d.comb += [
            keeps.eq(
                Mux(
                    self.i.first,
                    (self.alive & ~self.clear & ~doomed) | fault("flits are stored although no session is there"),
                    kept,
                )
            ),
            self.o_valid.eq(self.i_valid & keeps),
            self.dropped.eq(arrives & ~keeps),
        ]
        with m.If(self.i_valid):
            m.d.sync += kept.eq(keeps)

        # The pool it is charged to
        kind = queue[0]
        dedicated = Signal()
        m.d.comb += [
            dedicated.eq(Array([self.free[link.queues] == 0, self.free[link.queues + 1] == 0])[kind]),
            self.spend.eq(self.o_valid & self.i.first),
            self.account.eq(Mux(dedicated, queue, link.queues + kind)),
            self.header.eq(self.i.data[: FLIT_HEADER_LAYOUT.size]),
            self.header.vc.eq(queue >> 1),
            self.header.class_.eq(queue >> 1),
            self.header.kind.eq(kind),
            self.header.dedicated.eq(
                dedicated & ~fault("an egress names the shared pool in a header and charges the dedicated one")
            ),
            self.header.head.eq(self.i.head),
            self.header.tail.eq(self.i.tail),
        ]
        return m
