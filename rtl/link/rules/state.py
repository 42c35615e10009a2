"""States and sessions of one end of a link."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.layouts import layout
from rtl.contract.link import CONTROL, REFUSED_IN_A_ROW, REPEAT_FLITS, VERSION, ControlKind, LinkState
from rtl.contract.link_config import LinkConfig

__all__ = ["CONTROL_LAYOUT", "LinkStates"]

CONTROL_LAYOUT = layout(CONTROL)


class LinkStates(wiring.Component):
    """DOWN, ALIGN, HANDSHAKE, UP, RETRAIN, DISABLED, and the sessions of both ends.

    `rx` with `good`: a flit; `is_control`: it carries `word`. `listen`: what it acknowledges, grants and carries
    counts. `send`: the control word of the flits to send while not `up`. `clear`: a new session begins, everything
    about the old one is forgotten. `guard`: flits between the first sight of the partner's session and UP, more than
    a repeated flit is old. `session_init`: the last session of before reset; looked at in the first cycle.
    Timing: `listen`, `clear`, `retrained` and `down` are combinational, the others registers.
    """

    def __init__(self, cfg: LinkConfig, guard: int = REPEAT_FLITS + 1):
        self.cfg = cfg
        self.guard = guard
        flags = ("tick", "aligned", "realign", "stalled", "give_up", "overrun", "disabled", "restart")
        super().__init__(
            {
                **{name: In(1) for name in flags},
                "session_init": In(16),
                "rx": In(1),
                "good": In(1),
                "is_control": In(1),
                "word": In(CONTROL_LAYOUT),
                "listen": Out(1),
                "state": Out(4),
                "up": Out(1),
                "align": Out(1),
                "session": Out(16),
                "partner": Out(16),
                "mismatch": Out(1),
                "send": Out(CONTROL_LAYOUT),
                "clear": Out(1),
                "retrained": Out(1),
                "down": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state, word = self.state, self.word
        started = Signal()
        seen, complete, ready, kept, heard = (Signal(name=n) for n in ("seen", "complete", "ready", "kept", "heard"))
        since = Signal(range(self.guard + 1))
        refused = Signal(range(REFUSED_IN_A_ROW))
        control, plain, foreign, linked = Signal(), Signal(), Signal(), Signal()
        retrain = word.control_kind == ControlKind.RETRAIN

        m.d.comb += [
            self.up.eq(state == LinkState.UP),
            self.align.eq((state == LinkState.DOWN) | (state == LinkState.ALIGN)),
            linked.eq(self.up | (state == LinkState.RETRAIN)),
            control.eq(self.rx & self.good & self.is_control),
            plain.eq(self.rx & self.good & ~self.is_control),
            foreign.eq(
                control
                & ((word.session != self.partner) | (retrain & (word.echo != self.session)))
                & ~fault("the session of the partner is not compared")
            ),
            self.listen.eq(linked & self.rx & self.good & ~foreign),
        ]
        stated = {
            "version": VERSION,
            "vcs": self.cfg.classes,
            "classes": self.cfg.classes,
            "window": self.cfg.window_flits,
            "lanes": self.cfg.lanes,
            "spare_lanes": self.cfg.spare_lanes,
        }
        m.d.comb += [
            *(self.send[name].eq(value) for name, value in stated.items()),
            self.send.control_kind.eq(Mux(kept, ControlKind.RETRAIN, ControlKind.HANDSHAKE)),
            self.send.echo_valid.eq(seen),
            self.send.heard.eq(Mux(kept, heard, complete)),
            self.send.session.eq(self.session),
            self.send.echo.eq(self.partner),
        ]

        realign = Signal()
        m.d.comb += realign.eq(
            self.realign
            | (self.rx & ~self.good & (refused == REFUSED_IN_A_ROW - 1) & ~fault("no ALIGN after refused flits"))
        )
        enter_retrain = Signal()
        m.d.comb += self.retrained.eq(enter_retrain)

        def new_session(to: LinkState) -> None:
            m.d.comb += self.clear.eq(1)
            m.d.sync += [
                state.eq(to),
                self.session.eq(self.session + ~fault("a new session has the number of the old one")),
                *(s.eq(0) for s in (seen, complete, ready, kept, heard, since, refused, self.mismatch)),
            ]

        with m.If(~started):
            m.d.sync += [started.eq(1), self.session.eq(self.session_init + 1)]
        with m.Elif(self.disabled):
            with m.If(state != LinkState.DISABLED):
                new_session(LinkState.DISABLED)
        with m.Elif(state == LinkState.DISABLED):
            m.d.comb += self.down.eq(1)
            new_session(LinkState.DOWN)
        with m.Elif(state == LinkState.DOWN):
            with m.If(self.tick):
                m.d.sync += state.eq(LinkState.ALIGN)
        with m.Elif(self.restart | self.overrun | self.give_up | (foreign & linked)):
            m.d.comb += self.down.eq(1)
            new_session(LinkState.DOWN)
        with m.Elif(state == LinkState.ALIGN):
            with m.If(self.aligned):
                m.d.comb += enter_retrain.eq(kept & ~fault("ALIGN ends in HANDSHAKE although the session is kept"))
                m.d.sync += [state.eq(Mux(enter_retrain, LinkState.RETRAIN, LinkState.HANDSHAKE)), heard.eq(0)]
        with m.Elif(realign):
            m.d.sync += [state.eq(LinkState.ALIGN), refused.eq(0)]
        with m.Else():
            with m.If(self.rx):
                m.d.sync += refused.eq(Mux(self.good, 0, refused + 1))
            with m.If(state == LinkState.HANDSHAKE):
                self._handshake(m, control, plain, seen, complete, ready, kept, since)
            with m.Elif(self.up):
                m.d.comb += enter_retrain.eq((control & ~word.heard) | self.stalled)
                with m.If(enter_retrain):
                    m.d.sync += [state.eq(LinkState.RETRAIN), heard.eq(control & ~word.heard)]
            with m.Else():
                with m.If(control):
                    m.d.sync += heard.eq(1)
                with m.If((control & word.heard) | (plain & heard) | fault("RETRAIN is left as soon as it is entered")):
                    m.d.sync += state.eq(LinkState.UP)
        return m

    def _handshake(
        self,
        m: Module,
        control: Signal,
        plain: Signal,
        seen: Signal,
        complete: Signal,
        ready: Signal,
        kept: Signal,
        since: Signal,
    ) -> None:
        """HANDSHAKE: values after this cycle's flit decide."""
        word = self.word
        other, mismatch, echoed = Signal(), Signal(), Signal()
        complete_now, ready_now = Signal(), Signal()
        since_now = Signal.like(since)
        pairs = [(word[n], self.send[n]) for n in ("version", "vcs", "classes", "window", "lanes", "spare_lanes")]
        differs = pairs[0][0] != pairs[0][1]
        for theirs, ours in pairs[1:]:
            differs = differs | (theirs != ours)
        m.d.comb += [
            other.eq(control & (~seen | (word.session != self.partner))),
            mismatch.eq(differs),
            echoed.eq(
                word.echo_valid & ((word.echo == self.session) | fault("UP without the echo of the own session"))
            ),
            since_now.eq(since),
            complete_now.eq(complete),
            ready_now.eq(ready),
        ]
        with m.If(self.rx & seen & (since != self.guard)):
            m.d.comb += since_now.eq(since + 1)
        with m.If(plain):
            m.d.comb += ready_now.eq(ready | complete)
        with m.If(control):
            m.d.comb += [
                complete_now.eq((complete & ~other) | (echoed & (~mismatch | fault("parameters are not compared")))),
                ready_now.eq((ready & ~other) | (complete_now & word.heard)),
            ]
            m.d.sync += self.mismatch.eq(mismatch)
        with m.If(other):
            m.d.comb += since_now.eq(0)
            m.d.sync += [seen.eq(1), self.partner.eq(word.session)]
        m.d.sync += [complete.eq(complete_now), ready.eq(ready_now), since.eq(since_now)]
        with m.If(ready_now & ((since_now == self.guard) | fault("UP before an old flit can have gone by"))):
            m.d.sync += [self.state.eq(LinkState.UP), kept.eq(1)]
