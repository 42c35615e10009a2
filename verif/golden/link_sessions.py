"""States and sessions of one end of a link, and its watch over progress (docs/link-rules.md).

Both move in cycles: `step` takes what happens in a cycle, with the state as it was before.
"""

from dataclasses import dataclass

from rtl.contract.link import (
    CONTROL,
    NO_PROGRESS_FLITS,
    REFUSED_IN_A_ROW,
    REPEAT_FLITS,
    RETRAINS_WITHOUT_PROGRESS,
    VERSION,
    ControlKind,
    LinkState,
)
from rtl.contract.link_config import LinkConfig

__all__ = ["Happened", "Progress", "Sessions", "parameters"]


def parameters(cfg: LinkConfig) -> dict[str, int]:
    """Fields of a control flit in which both ends must agree."""
    return {
        "version": VERSION,
        "vcs": cfg.classes,
        "classes": cfg.classes,
        "window": cfg.window_flits,
        "lanes": cfg.lanes,
        "spare_lanes": cfg.spare_lanes,
    }


@dataclass(slots=True, kw_only=True)
class Happened:
    """What the state machine sees in a cycle. rx: None no flit, False a refused one, True a good one."""

    rx: bool | None = None
    control: int | None = None  # CONTROL word, if the good flit is a control flit
    tick: bool = False
    aligned: bool = False
    realign: bool = False
    stalled: bool = False
    give_up: bool = False
    overrun: bool = False
    disable: bool = False
    restart: bool = False


class Sessions:
    """The state machine of an end. `guard`: flits to wait in HANDSHAKE, more than a repeat is old."""

    def __init__(self, cfg: LinkConfig, session_init: int = 0, guard: int = REPEAT_FLITS + 1):
        self.parameters = parameters(cfg)
        self.guard = guard
        self.state = LinkState.DOWN
        self.session = (session_init + 1) % (1 << 16)
        self._begin()
        self.partner = 0

    def _begin(self) -> None:
        """What a new session forgets."""
        self.seen = False  # a session of the partner is known
        self.complete = False  # the partner states our session and our parameters
        self.ready = False  # the partner is complete, too
        self.kept = False  # this pair of sessions has been UP
        self.since = 0  # flits since the partner's session was seen
        self.heard = False  # in RETRAIN: a control flit
        self.mismatch = False
        self.refused = 0  # flits in a row

    @property
    def send_control(self) -> bool:
        """Only UP may send anything else."""
        return self.state != LinkState.UP

    @property
    def word(self) -> int:
        """CONTROL word of a flit that starts now."""
        return CONTROL.pack(
            self.parameters,
            control_kind=ControlKind.RETRAIN if self.kept else ControlKind.HANDSHAKE,
            echo_valid=self.seen,
            heard=self.heard if self.kept else self.complete,
            session=self.session,
            echo=self.partner,
        )

    def listens(self, control: int | None) -> bool:
        """The DLP of this good flit counts."""
        if self.state not in (LinkState.UP, LinkState.RETRAIN):
            return False
        return control is None or not self._foreign(CONTROL.unpack(control))

    def _foreign(self, word: dict[str, int]) -> bool:
        """The partner is in another pair of sessions than this end."""
        retrain = word["control_kind"] == ControlKind.RETRAIN
        return word["session"] != self.partner or (retrain and word["echo"] != self.session)

    def step(self, now: Happened) -> tuple[set[str], bool]:
        """A cycle. Returns what happened (retrained, down) and whether a new session began (clear all)."""
        word = None if now.control is None else CONTROL.unpack(now.control)
        if now.disable:
            if self.state == LinkState.DISABLED:
                return set(), False
            return self._new_session(LinkState.DISABLED), True
        if self.state == LinkState.DISABLED:
            return self._new_session(LinkState.DOWN), True
        if self.state == LinkState.DOWN:
            if now.tick:
                self.state = LinkState.ALIGN
            return set(), False
        foreign = self.state in (LinkState.UP, LinkState.RETRAIN) and word is not None and self._foreign(word)
        if now.restart or now.overrun or now.give_up or foreign:
            return self._new_session(LinkState.DOWN), True
        if self.state == LinkState.ALIGN:
            if now.aligned:
                if self.kept:
                    return self._retrain(False), False
                self.state = LinkState.HANDSHAKE
            return set(), False
        if now.rx is not None:
            self.refused = 0 if now.rx else self.refused + 1
        if now.realign or self.refused == REFUSED_IN_A_ROW:
            self.refused = 0
            self.state = LinkState.ALIGN
            return set(), False
        if self.state == LinkState.HANDSHAKE:
            self._handshake(now, word)
        elif self.state == LinkState.UP:
            asked = word is not None and not word["heard"]
            if asked or now.stalled:
                return self._retrain(asked), False
        elif word is not None:
            self.heard = True
            if word["heard"]:
                self.state = LinkState.UP
        elif now.rx and self.heard:
            self.state = LinkState.UP
        return set(), False

    def _handshake(self, now: Happened, word: dict[str, int] | None) -> None:
        if now.rx is not None and self.seen:
            self.since = min(self.since + 1, self.guard)
        if word is None:
            self.ready |= now.rx is True and self.complete
        else:
            if not self.seen or word["session"] != self.partner:
                self.partner, self.seen, self.since = word["session"], True, 0
                self.complete = self.ready = False
            self.mismatch = any(word[name] != value for name, value in self.parameters.items())
            self.complete |= bool(word["echo_valid"]) and word["echo"] == self.session and not self.mismatch
            self.ready |= self.complete and bool(word["heard"])
        if self.ready and self.since == self.guard:
            self.state = LinkState.UP
            self.kept = True

    def _retrain(self, heard: bool) -> set[str]:
        self.state = LinkState.RETRAIN
        self.heard = heard
        return {"retrained"}

    def _new_session(self, state: LinkState) -> set[str]:
        self.state = state
        self.session = (self.session + 1) % (1 << 16)
        self._begin()
        return {"down"} if state == LinkState.DOWN else set()


class Progress:
    """Watches two waits (sender: flits in the buffer; receiver: a gap) that must not last."""

    def __init__(self, flits: int = NO_PROGRESS_FLITS):
        self.flits = flits
        self.clear()

    def clear(self) -> None:
        """A new session."""
        self.ticks = [0, 0]
        self.tries = [0, 0]

    def step(self, tick: bool, waits: tuple[bool, bool], moves: tuple[bool, bool]) -> tuple[bool, bool]:
        """A cycle. Returns stalled (time to retrain) and give_up (retrained often enough)."""
        stalled = give_up = False
        for n in range(2):
            if moves[n] or not waits[n]:
                self.ticks[n] = self.tries[n] = 0
            elif tick:
                self.ticks[n] += 1
                if self.ticks[n] == self.flits:
                    self.ticks[n] = 0
                    stalled = True
                    give_up |= self.tries[n] == RETRAINS_WITHOUT_PROGRESS
                    self.tries[n] = min(self.tries[n] + 1, RETRAINS_WITHOUT_PROGRESS)
        return stalled, give_up
