"""A partner for a port: one end of a link at flit granularity, in plain Python, without codec and lanes.

It speaks 242 information bytes a flit and takes 242 bytes, or None for a flit that was refused. One call of
`flit` is one flit time.
"""

from collections import deque

from rtl.contract.link import (
    DLP_AT,
    DLP_BYTES,
    FLIT_HEADER,
    FLIT_INFO_BYTES,
    FLIT_PAYLOAD_BYTES,
    REPEAT_FLITS,
    LinkCause,
    LinkState,
)
from rtl.contract.link_config import LinkConfig
from verif.golden.link_end import Flit, Inputs, LinkEnd

__all__ = ["LinkPartner"]


class LinkPartner:
    """Sends what `send` was given, in order and when credits allow; `received` is what arrived, in order.

    `stall`: keeps what arrived (slots stay taken) while True, a slow receiver. In ALIGN nothing is sent or heard:
    after `align_flits` flit times in a row in ALIGN the lanes count as found.
    """

    def __init__(self, cfg: LinkConfig, session_init: int = 0, align_flits: int = 4, guard: int = REPEAT_FLITS + 1):
        self.cfg = cfg
        self.end = LinkEnd(cfg, session_init, guard)
        self.align_flits = align_flits
        self.waiting: deque[bytes] = deque()
        self.buffer: dict[int, bytes] = {}  # retry buffer, by number
        self.received: list[bytes] = []
        self.held: deque[int] = deque()  # accounts of what has not been read out
        self.unresolved: list[bytes] = []
        self.counts = {cause: 0 for cause in LinkCause}
        self.stall = False
        self._aligning = 0

    @property
    def state(self) -> LinkState:
        """Of the state machine."""
        return self.end.state

    def send(self, payload: bytes) -> None:
        """Queue a payload flit: 236 bytes, or less; the flit header's pool bit is chosen here."""
        self.waiting.append(payload.ljust(FLIT_PAYLOAD_BYTES, b"\0"))

    def flit(
        self, rx: bytes | None, *, silent: bool = False, restart: bool = False, disable: bool = False
    ) -> bytes | None:
        """A flit time: hear `rx` (silent: nothing at all arrived) and return what is sent, None in ALIGN."""
        end = self.end
        aligning = end.state in (LinkState.DOWN, LinkState.ALIGN, LinkState.DISABLED)
        self._aligning = self._aligning + 1 if end.state == LinkState.ALIGN else 0
        now = Inputs(slot=not aligning, tick=True, restart=restart, disable=disable)
        now.aligned = self._aligning > self.align_flits
        now.rx = None if silent or aligning else self._parsed(rx)
        account = self._account()
        if account is not None:
            now.enqueue, now.spend = True, account
            self.buffer[end.sender.next] = self._charged(self.waiting.popleft(), account)
        if self.held and not self.stall:
            now.freed = self.held.popleft()
        numbers = [(end.sender.acked + 1 + n) % self.cfg.sequence_numbers for n in range(end.sender.in_flight)]
        out = end.cycle(now)
        if out.deliver and rx is not None:
            self.received.append(rx[:FLIT_PAYLOAD_BYTES])
            self.held.append(out.account)
        for cause in out.causes:
            self.counts[cause] += 1
        sent = None if aligning else self._bytes(out.payload, out.control, out.number, out.head, out.dlp)
        if out.clear:
            numbers += [(numbers[-1] + 1 if numbers else end.sender.next) % self.cfg.sequence_numbers] * now.enqueue
            self.counts[LinkCause.UNRESOLVED] += out.unresolved
            self.unresolved += [self.buffer[n] for n in numbers[len(numbers) - out.unresolved :]]
        return sent

    def _parsed(self, rx: bytes | None) -> Flit | bool:
        if rx is None:
            return False
        return Flit(int.from_bytes(rx[DLP_AT : DLP_AT + DLP_BYTES], "big"), int.from_bytes(rx[:16], "little"))

    def _account(self) -> int | None:
        """The account that the next payload flit charges, or None if it must wait."""
        if not self.waiting or not self.end.room:
            return None
        header = FLIT_HEADER.unpack(int.from_bytes(self.waiting[0][:4], "little"))
        own, shared = header["vc"] * 2 + header["kind"], self.cfg.queues + header["kind"]
        return next((a for a in (shared, own) if self.end.spends.free(a)), None)

    def _charged(self, payload: bytes, account: int) -> bytes:
        header = FLIT_HEADER.unpack(int.from_bytes(payload[:4], "little"))
        header["dedicated"] = int(account < self.cfg.queues)
        return FLIT_HEADER.pack(header).to_bytes(4, "little") + payload[4:]

    def _bytes(self, payload: bool, control: bool, number: int, head: int, dlp: int) -> bytes:
        if payload:
            body = self.buffer[number]
        else:
            body = head.to_bytes(16, "little") if control else b""
        info = body.ljust(FLIT_PAYLOAD_BYTES, b"\0") + dlp.to_bytes(DLP_BYTES, "big")
        assert len(info) == FLIT_INFO_BYTES
        return info
