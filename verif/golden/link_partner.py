"""A partner for a port: one end of a link at flit granularity, in plain Python, without codec and lanes.

It speaks 242 information bytes a flit and takes 242 bytes, or None for a flit that was refused. One call of
`flit` is one flit time. The rules are an `End`: LinkEnd, or a view of RTL that `prepare` and `finish` put a
data path around.
"""

from collections import deque
from typing import Protocol

from rtl.contract.link import (
    DLP_AT,
    DLP_BYTES,
    FLIT_HEADER,
    FLIT_PAYLOAD_BYTES,
    LinkCause,
    LinkState,
)
from rtl.contract.link_config import LinkConfig
from verif.golden.link_end import Flit, Inputs, LinkEnd, Outputs

__all__ = ["SILENCE", "End", "LinkPartner"]

SILENCE = b""
"""Nothing arrived in this flit time, not even a refused flit."""


class End(Protocol):
    """What a data path must know of the rules."""

    @property
    def state(self) -> int: ...

    @property
    def room(self) -> bool: ...

    @property
    def put_index(self) -> int: ...

    def free(self, account: int) -> int: ...


class LinkPartner:
    """Sends what `send` was given, in order and when credits allow; `received` is what arrived, in order.

    `stall`: keeps what arrived (slots stay taken) while True, a slow receiver. In ALIGN nothing is sent or heard:
    after `align_flits` flit times in a row in ALIGN the lanes count as found. `unresolved`: what was in the retry
    buffer when a session ended.
    """

    def __init__(self, cfg: LinkConfig, session_init: int = 0, end: End | None = None, align_flits: int = 4):
        self.cfg = cfg
        self.own = LinkEnd(cfg, session_init)
        self.end: End = end or self.own
        self.align_flits = align_flits
        self.waiting: deque[bytes] = deque()
        self.buffer: dict[int, bytes] = {}  # the retry buffer by slot
        self.latest: deque[bytes] = deque(maxlen=cfg.window_flits + 2)  # what entered it last
        self.received: list[bytes] = []
        self.held: deque[int] = deque()  # accounts of what has not been read out
        self.unresolved: list[bytes] = []
        self.counts = {cause: 0 for cause in LinkCause}
        self.stall = False
        self._aligning = 0

    @property
    def state(self) -> LinkState:
        """Of the state machine."""
        return LinkState(self.end.state)

    def send(self, payload: bytes) -> None:
        """Queue a payload flit: flit header and words, at most 236 bytes; the header's pool bit is chosen later."""
        self.waiting.append(payload.ljust(FLIT_PAYLOAD_BYTES, b"\0"))

    def flit(self, rx: bytes | None, *, restart: bool = False, disable: bool = False) -> bytes:
        """A flit time: hear `rx` (None: refused; SILENCE) and return what is sent, SILENCE in ALIGN."""
        now = self.prepare(rx)
        now.restart, now.disable = restart, disable
        return self.finish(now, self.own.cycle(now), rx)

    def prepare(self, rx: bytes | None) -> Inputs:
        """What happens in this flit time."""
        state = self.end.state
        aligning = state in (LinkState.DOWN, LinkState.ALIGN, LinkState.DISABLED)
        self._aligning = self._aligning + 1 if state == LinkState.ALIGN else 0
        now = Inputs(slot=not aligning, tick=True, aligned=self._aligning > self.align_flits)
        if rx is None:
            now.rx = None if aligning else False
        elif rx and not aligning:
            now.rx = Flit(int.from_bytes(rx[DLP_AT : DLP_AT + DLP_BYTES], "big"), int.from_bytes(rx[:16], "little"))
        account = self._account()
        if account is not None:
            now.enqueue, now.spend = True, account
            payload = self._charged(self.waiting.popleft(), account)
            self.latest.append(payload)
            self.buffer[self.end.put_index] = payload
        if self.held and not self.stall:
            now.freed = self.held.popleft()
        return now

    def finish(self, now: Inputs, out: Outputs, rx: bytes | None) -> bytes:
        """What came of it; returns the flit that is sent."""
        if out.deliver and rx:
            self.received.append(rx[:FLIT_PAYLOAD_BYTES])
            self.held.append(out.account)
        for cause in out.causes:
            self.counts[cause] += 1
        if out.clear and out.unresolved:
            self.counts[LinkCause.UNRESOLVED] += out.unresolved
            self.unresolved += list(self.latest)[-out.unresolved :]
        if not now.slot:
            return SILENCE
        body = b""
        if out.payload:
            body = self.buffer[out.index]
        elif out.control:
            body = out.head.to_bytes(16, "little")
        return body.ljust(FLIT_PAYLOAD_BYTES, b"\0") + out.dlp.to_bytes(DLP_BYTES, "big")

    def _account(self) -> int | None:
        """The account that the next payload flit charges, shared before dedicated, or None if it must wait."""
        if not self.waiting or not self.end.room:
            return None
        header = FLIT_HEADER.unpack(int.from_bytes(self.waiting[0][:4], "little"))
        own, shared = header["vc"] * 2 + header["kind"], self.cfg.queues + header["kind"]
        return next((a for a in (shared, own) if self.end.free(a)), None)

    def _charged(self, payload: bytes, account: int) -> bytes:
        header = FLIT_HEADER.unpack(int.from_bytes(payload[:4], "little"))
        header["dedicated"] = int(account < self.cfg.queues)
        return FLIT_HEADER.pack(header).to_bytes(4, "little") + payload[4:]
