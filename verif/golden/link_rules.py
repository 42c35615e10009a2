"""Replay and credits of a link, one class a direction and end (docs/link-rules.md).

Everything is small integers: numbers modulo `numbers`, nak ids and epochs modulo 4, counts modulo 4096.
"""

from rtl.contract.link import CREDIT_MODULUS, DEDICATED_FLITS, REPEAT_FLITS, CreditKind
from rtl.contract.link_config import LinkConfig

__all__ = ["CreditReceiver", "CreditSender", "ReplayReceiver", "ReplaySender"]

NAK_IDS = 4
STALE_CREDITS = 256
"""A count so little behind the limit comes from a repeated flit."""


class ReplaySender:
    """What has been sent and not acknowledged; next, acked, pos and fresh are numbers of payload flits.

    acked: the last one known to be accepted; pos: goes next; fresh: the first never sent; next: the one that the
    next new flit gets.
    """

    def __init__(self, numbers: int, window: int):
        self.numbers = numbers
        self.window = window
        self.clear()

    def clear(self) -> None:
        """A new session."""
        self.next, self.acked, self.pos, self.fresh = 1, 0, 1, 1
        self.epoch = 0
        self.unlike = 0  # flits in a row whose nak id is neither the epoch nor the one after it

    @property
    def in_flight(self) -> int:
        """Flits in the retry buffer, sent or not."""
        return (self.next - 1 - self.acked) % self.numbers

    @property
    def room(self) -> bool:
        """Another flit may enter the retry buffer."""
        return self.in_flight < self.window and (self.next - self.fresh) % self.numbers < 2

    def enqueue(self) -> None:
        """A new flit has entered."""
        self.next = (self.next + 1) % self.numbers

    def number(self, payload: bool) -> int:
        """`seq` of a flit that starts now."""
        return self.pos if payload else (self.pos - 1) % self.numbers

    def sent(self) -> None:
        """The payload flit `pos` went on the wire."""
        if self.pos == self.fresh:
            self.fresh = (self.fresh + 1) % self.numbers
        self.pos = (self.pos + 1) % self.numbers

    def hear(self, ack: int, nak_id: int) -> set[str]:
        """A good flit of the partner. Returns what came of it: moved, bad_ack, replay."""
        events = set[str]()
        gained = (ack - self.acked) % self.numbers
        if 0 < gained <= (self.fresh - 1 - self.acked) % self.numbers:
            if gained > (self.pos - 1 - self.acked) % self.numbers:
                self.pos = (ack + 1) % self.numbers
            self.acked = ack
            events.add("moved")
        elif 0 < gained < self.numbers // 2:
            events.add("bad_ack")
        ahead = (nak_id - self.epoch) % NAK_IDS
        if ahead == 1 or (ahead and self.unlike == REPEAT_FLITS):
            self.epoch = nak_id
            self.pos = (self.acked + 1) % self.numbers
            events.add("replay")
        self.unlike = self.unlike + 1 if ahead and "replay" not in events else 0
        return events


class ReplayReceiver:
    """What has been accepted; `ack` is the number of the last one, `pending`: a gap waits for its replay."""

    def __init__(self, numbers: int):
        self.numbers = numbers
        self.clear()

    def clear(self) -> None:
        """A new session."""
        self.ack = 0
        self.nak_id = 0
        self.pending = False
        self.unanswered = False  # no payload flit has been heard under the present nak id

    def hear(self, payload: bool, seq: int, epoch: int, room: bool) -> str:
        """A good flit. Returns deliver, duplicate, spurious (a duplicate, too), gap (a nak), overrun or nothing."""
        ahead = (seq - self.ack - payload) % self.numbers  # of what would fit
        answer = payload and epoch == self.nak_id and self.unanswered
        if answer:
            self.unanswered = False
        if payload and ahead == 0:
            if not room:
                return "overrun"
            self.ack = seq
            self.pending = False
            return "deliver"
        if 0 < ahead < self.numbers // 2:
            if epoch != self.nak_id:  # sent before the nak was heard
                return ""
            self.nak_id = (self.nak_id + 1) % NAK_IDS
            self.pending = self.unanswered = True
            return "gap"
        return ("spurious" if answer else "duplicate") if payload else ""


class CreditSender:
    """Credits to spend, by account."""

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.clear()

    def clear(self) -> None:
        """A new session: no credits."""
        self.limit = [0] * self.cfg.accounts
        self.used = [0] * self.cfg.accounts

    def free(self, account: int) -> int:
        """Flits that may be sent."""
        return (self.limit[account] - self.used[account]) % CREDIT_MODULUS

    def spend(self, account: int) -> None:
        """A flit was charged."""
        self.used[account] = (self.used[account] + 1) % CREDIT_MODULUS

    def hear(self, credit_kind: int, dedicated: int, vc: int, count: int) -> bool:
        """A count of the partner. False if it cannot be (bad_credit); it is ignored then."""
        if credit_kind not in (CreditKind.REQUEST, CreditKind.RESPONSE):
            return credit_kind == CreditKind.NONE
        if dedicated and vc >= self.cfg.classes:
            return False
        account = (vc * 2 if dedicated else self.cfg.queues) + credit_kind - 1
        gained = (count - self.limit[account]) % CREDIT_MODULUS
        if gained >= CREDIT_MODULUS - STALE_CREDITS:
            return True
        if gained >= CREDIT_MODULUS // 2 or (count - self.used[account]) % CREDIT_MODULUS >= CREDIT_MODULUS // 2:
            return False
        self.limit[account] = count
        return True


class CreditReceiver:
    """Slots of the pool by account, and which count is told next."""

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.size = [DEDICATED_FLITS] * cfg.queues + [cfg.shared_flits] * 2
        self.held = [0] * cfg.accounts
        self.clear()

    def clear(self) -> None:
        """A new session; slots still held are missing in the first counts."""
        self.count = [size - held for size, held in zip(self.size, self.held, strict=True)]
        self.changed = [False] * self.cfg.accounts
        self.turn = 0  # told now
        self.round = 0  # told when nothing changed, or every second time
        self.favour = False  # the one told now was chosen because it had changed

    def room(self, account: int) -> bool:
        """A flit of this account has a slot."""
        return self.held[account] < self.size[account]

    def arrive(self, account: int) -> None:
        """A flit took a slot."""
        self.held[account] += 1

    def freed(self, account: int) -> None:
        """A slot was read out."""
        self.held[account] -= 1
        self.count[account] = (self.count[account] + 1) % CREDIT_MODULUS
        self.changed[account] = True

    def told(self) -> tuple[int, int, int, int]:
        """credit_kind, dedicated, vc, count of the flit that starts now."""
        shared = self.turn >= self.cfg.queues
        return 1 + self.turn % 2, int(not shared), 0 if shared else self.turn // 2, self.count[self.turn]

    def next_turn(self) -> None:
        """A flit starts with `told`: choose the next."""
        self.changed[self.turn] = False
        changed = [a for a in range(self.cfg.accounts) if self.changed[a]]
        if changed and not self.favour:
            later = [a for a in changed if a > self.turn]
            self.turn, self.favour = (later or changed)[0], True
        else:
            self.round = (self.round + 1) % self.cfg.accounts
            self.turn, self.favour = self.round, False
