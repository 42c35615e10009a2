"""What an endpoint does with the request at its head, step by step."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import PacketOpcode

__all__ = ["Execute"]

_IN = (
    *("request", "good", "flagged", "open_class", "open_any", "place"),
    *("scatter_ready", "gather_ready", "signal_ready", "held", "held_error", "answered"),
)
_OUT = (
    *("ready", "scatter", "gather", "signal", "asks", "answer", "error", "drop", "closes", "refused"),
    *("adding", "busy"),
)


class Execute(wiring.Component):
    """`request` with `good` and `opcode`; `ready` ends it, `closes` gives its place back, `refused` tells that it was
    not executed. `flagged`: its signal follows.

    `scatter`, `gather`: the row of its payload, of what it reads; `signal`: to Pending. A read waits while a write of
    its class is open, an addition (`asks`, then `adding`) for all writes; both need a `place` for what they read.
    `held` (`held_error`): an addition's words are there. `answer` (with `error`: refused) until `answered`; `drop`
    gives their place back unsent. Timing: a request takes at least two cycles.
    """

    def __init__(self):
        super().__init__(
            {"opcode": In(4), **{name: In(1) for name in _IN}, **{name: Out(1) for name in _OUT}},
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        opcode = self.opcode
        early = fault("the signal of a write goes out before the write")
        fetches = opcode == PacketOpcode.FETCH_ADD
        failed = Signal()  # HBM, for an addition
        with m.FSM() as fsm:
            with m.State("IDLE"):
                with m.If(self.request):
                    m.next = "REFUSE"
                    with m.If(self.good):
                        with m.Switch(opcode):
                            with m.Case(PacketOpcode.WRITE):
                                m.next = "WRITE"
                                with m.If(early & self.flagged):
                                    m.next = "SIGNAL"
                            with m.Case(PacketOpcode.READ):
                                m.next = "READ"
                            with m.Case(PacketOpcode.SIGNAL):
                                m.next = "SIGNAL"
                            with m.Default():
                                m.next = "ADD"
            with m.State("WRITE"):
                m.d.comb += self.scatter.eq(1)
                with m.If(self.scatter_ready):
                    m.next = "IDLE"
                    with m.If(self.flagged & ~early):
                        m.next = "SIGNAL"
                    with m.Else():
                        m.d.comb += self.ready.eq(1)
            with m.State("SIGNAL"):
                m.d.comb += self.signal.eq(1)
                with m.If(self.signal_ready):
                    m.next = "IDLE"
                    m.d.comb += [self.ready.eq(1), self.closes.eq(opcode == PacketOpcode.SIGNAL)]
                    with m.If(early & (opcode == PacketOpcode.WRITE)):
                        m.d.comb += self.ready.eq(0)
                        m.next = "WRITE"
            with m.State("READ"):
                with m.If(
                    (~self.open_class | fault("a read of an endpoint does not wait for the writes before it"))
                    & self.place
                ):
                    m.d.comb += self.gather.eq(1)
                    with m.If(self.gather_ready):
                        m.d.comb += [self.ready.eq(1), self.closes.eq(1)]
                        m.next = "IDLE"
            with m.State("ADD"):
                m.d.comb += self.asks.eq(1)
                with m.If(~self.open_any & self.place):
                    m.d.comb += self.gather.eq(1)
                    with m.If(self.gather_ready):
                        m.next = "GATHER"
            with m.State("GATHER"):
                with m.If(self.held):
                    m.d.sync += failed.eq(self.held_error)
                    m.next = "SUM"
            with m.State("SUM"):
                with m.If(failed):
                    m.d.comb += self.drop.eq(1)
                    m.next = "REFUSE"
                with m.Else():
                    m.d.comb += self.scatter.eq(1)
                    with m.If(self.scatter_ready):
                        m.next = "COMMIT"
            with m.State("COMMIT"):
                with m.If(~self.open_any):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += [self.answer.eq(fetches), self.drop.eq(~fetches)]
                with m.If(~fetches | self.answered):
                    m.next = "IDLE"
                    with m.If(self.flagged):
                        m.next = "SIGNAL"
                    with m.Else():
                        m.d.comb += self.ready.eq(1)
            with m.State("REFUSE"):
                told = ((opcode == PacketOpcode.READ) | fetches) & ~fault("a read that is refused has no answer")
                m.d.comb += [self.answer.eq(told), self.error.eq(1)]
                with m.If(~told | self.answered):
                    m.d.comb += [self.refused.eq(1), self.ready.eq(1), self.closes.eq(1)]
                    m.next = "IDLE"
            m.d.comb += [
                self.adding.eq(fsm.ongoing("GATHER") | fsm.ongoing("SUM") | fsm.ongoing("COMMIT")),
                self.busy.eq(~fsm.ongoing("IDLE")),
            ]
        return m
