"""All rules of one end of a link together, a cycle at a time: what LinkRules of the port does."""

from dataclasses import dataclass, field

from rtl.contract.link import CONTROL, DLP, FLIT_HEADER, REPEAT_FLITS, ControlKind, LinkCause, LinkState, Usage
from rtl.contract.link_config import LinkConfig
from verif.golden.link_rules import CreditReceiver, CreditSender, ReplayReceiver, ReplaySender
from verif.golden.link_sessions import Happened, Progress, Sessions

__all__ = ["Flit", "Inputs", "LinkEnd", "Outputs", "malformed"]


@dataclass(frozen=True, slots=True)
class Flit:
    """A good flit as the rules see it: DLP word and first 16 bytes (FLIT_HEADER or CONTROL)."""

    dlp: int
    head: int


@dataclass(slots=True, kw_only=True)
class Inputs:
    """What happens in a cycle. rx: None nothing, False a refused flit, or a good one."""

    slot: bool = False  # a flit starts
    may: bool = True  # it may be payload
    enqueue: bool = False
    spend: int | None = None  # account
    rx: Flit | bool | None = None
    freed: int | None = None  # account
    tick: bool = False
    aligned: bool = False
    realign: bool = False
    disable: bool = False
    restart: bool = False


@dataclass(slots=True)
class Outputs:
    """What an end says in a cycle; the first five belong to a flit that starts in it."""

    payload: bool
    control: bool
    index: int  # of the payload flit in the retry buffer
    dlp: int
    head: int
    deliver: bool = False
    account: int = 0
    causes: set[LinkCause] = field(default_factory=set)
    clear: bool = False
    unresolved: int = 0


def malformed(cfg: LinkConfig, dlp: dict[str, int], head: int) -> bool:
    """A field that must not be."""
    if dlp["usage"] == Usage.RESERVED or not dlp["one"] or dlp["credit_kind"] == 3:
        return True
    if dlp["usage"] == Usage.PAYLOAD:
        header = FLIT_HEADER.unpack(head & 0xFFFFFFFF)
        return bool(header["zero"] or header["vc"] != header["class_"] or header["class_"] >= cfg.classes)
    kinds = (ControlKind.HANDSHAKE, ControlKind.RETRAIN)
    return dlp["usage"] == Usage.CONTROL and CONTROL.unpack(head)["control_kind"] not in kinds


class LinkEnd:
    """Registers of an end and what a cycle does to them."""

    def __init__(self, cfg: LinkConfig, session_init: int = 0, guard: int = REPEAT_FLITS + 1):
        self.cfg = cfg
        self.sender = ReplaySender(cfg.sequence_numbers, cfg.window_flits)
        self.receiver = ReplayReceiver(cfg.sequence_numbers)
        self.spends = CreditSender(cfg)
        self.grants = CreditReceiver(cfg)
        self.sessions = Sessions(cfg, session_init, guard)
        self.progress = Progress()
        self.prior_payload = False
        self.slots = max(2, 1 << (cfg.window_flits - 1).bit_length())  # of the retry buffer

    @property
    def state(self) -> LinkState:
        """Of the state machine."""
        return self.sessions.state

    @property
    def room(self) -> bool:
        """A new flit may enter the retry buffer."""
        return self.state == LinkState.UP and self.sender.room

    @property
    def put_index(self) -> int:
        """Slot of the retry buffer for the next new flit."""
        return self.sender.next % self.slots

    def free(self, account: int) -> int:
        """Credits to spend."""
        return self.spends.free(account)

    def cycle(self, now: Inputs) -> Outputs:
        """One cycle; outputs belong to the state before it."""
        out = self._send(now)
        waits = (self.sender.in_flight > 0, self.receiver.pending)
        if now.slot:
            self.prior_payload = out.payload
            self.grants.next_turn()
            if out.payload:
                self.sender.sent()
        if now.enqueue:
            self.sender.enqueue()
        if now.spend is not None:
            self.spends.spend(now.spend)
        happened = Happened(
            tick=now.tick, aligned=now.aligned, realign=now.realign, disable=now.disable, restart=now.restart
        )
        moved = self._receive(now, out, happened)
        if now.freed is not None:
            self.grants.freed(now.freed)
        happened.stalled, happened.give_up = self.progress.step(now.tick, waits, (moved, out.deliver))
        events, out.clear = self.sessions.step(happened)
        if "retrained" in events:
            out.causes.add(LinkCause.RETRAINED)
        if "down" in events:
            out.causes.add(LinkCause.DOWN)
        if out.clear:
            out.unresolved = self.sender.in_flight
            for part in (self.sender, self.receiver, self.spends, self.grants, self.progress):
                part.clear()
        return out

    def _send(self, now: Inputs) -> Outputs:
        """The flit that would start now."""
        control = self.sessions.send_control
        payload = not control and now.may and self.sender.pos != self.sender.next
        kind, dedicated, vc, count = self.grants.told()
        dlp = DLP.pack(
            usage=Usage.CONTROL if control else Usage.PAYLOAD if payload else Usage.NOP,
            prior_payload=self.prior_payload,
            one=1,
            epoch=self.sender.epoch,
            seq=self.sender.number(payload),
            nak_id=self.receiver.nak_id,
            credit_kind=kind,
            dedicated=dedicated,
            vc=vc,
            count=count,
            ack=self.receiver.ack,
        )
        return Outputs(payload, control, self.sender.pos % self.slots, dlp, self.sessions.word)

    def _receive(self, now: Inputs, out: Outputs, happened: Happened) -> bool:
        """A flit of the partner. True if it acknowledges something new."""
        if now.rx is None:
            return False
        if isinstance(now.rx, bool):
            happened.rx = False
            out.causes.add(LinkCause.REFUSED)
            return False
        dlp = DLP.unpack(now.rx.dlp)
        if malformed(self.cfg, dlp, now.rx.head):
            out.causes.add(LinkCause.MALFORMED)
            return False
        happened.rx = True
        happened.control = now.rx.head if dlp["usage"] == Usage.CONTROL else None
        if not self.sessions.listens(happened.control):
            return False
        # A number as wide as the field, taken as the link counts.
        seq, ack = (dlp[name] % self.cfg.sequence_numbers for name in ("seq", "ack"))
        events = self.sender.hear(ack, dlp["nak_id"])
        if "bad_ack" in events:
            out.causes.add(LinkCause.BAD_ACK)
        if "replay" in events:
            out.causes.add(LinkCause.REPLAY)
        if not self.spends.hear(dlp["credit_kind"], dlp["dedicated"], dlp["vc"], dlp["count"]):
            out.causes.add(LinkCause.BAD_CREDIT)
        payload = dlp["usage"] == Usage.PAYLOAD
        header = FLIT_HEADER.unpack(now.rx.head & 0xFFFFFFFF)
        account = header["kind"] + (header["vc"] * 2 if header["dedicated"] else self.cfg.queues)
        room = not payload or self.grants.room(account)
        match self.receiver.hear(payload, seq, dlp["epoch"], room):
            case "deliver":
                out.deliver, out.account = True, account
                self.grants.arrive(account)
            case "overrun":
                happened.overrun = True
                out.causes.add(LinkCause.CREDIT_OVERRUN)
            case "gap":
                out.causes.add(LinkCause.GAP)
            case "duplicate":
                out.causes.add(LinkCause.DUPLICATE)
            case "spurious":
                out.causes |= {LinkCause.DUPLICATE, LinkCause.SPURIOUS}
            case _:
                pass
        return "moved" in events
