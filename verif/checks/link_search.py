"""All states of the replay rules at small numbers: `python -m verif.checks.link_search [--numbers 8 ...]`.

One sender and one receiver (verif/golden/link_rules.py), a FIFO each way, any flit may be lost, any order of events,
payload without end, and control flits (which carry the DLP of a NOP) at any time. In every reachable state:
nothing is delivered twice, out of order or never; an acknowledgement is only of what was delivered; no duplicate
arrives; a replay never begins with what was accepted; the rule of when to nak is the one of the decided protocol
("not pending, or under the epoch of the nak"), and a nak id is the epoch or the one after it. From every reachable
state a good run (no loss, fair) delivers everything. Ends with 1 and a trace if something does not hold.

Numbers only matter relative to each other, so states are stored relative to what the receiver has accepted.
"""

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from verif.golden.link_rules import NAK_IDS, ReplayReceiver, ReplaySender

__all__ = ["Found", "Search", "State", "main"]


class State(NamedTuple):
    """Places are counts of payload flits, the last accepted one is 0; nak ids relative to the receiver's."""

    acked: int = 0
    pos: int = 1
    fresh: int = 1
    next: int = 1
    epoch: int = 0
    pending: bool = False
    unanswered: bool = False
    forth: tuple[tuple[bool, int, int], ...] = ()  # payload, place of it or of the last one sent, epoch
    back: tuple[tuple[int, int], ...] = ()  # ack, nak id


@dataclass(slots=True)
class Found:
    """What a search says. `wrong` is empty if all holds; `trace` leads there from the start."""

    states: int
    steps: int
    seconds: float
    wrong: str
    trace: list[str]


class Search:
    """The rules with `numbers` and `window`, FIFOs of `depth` flits."""

    def __init__(self, numbers: int, window: int, depth: int = 2):
        self.numbers = numbers
        self.depth = depth
        self.sender = ReplaySender(numbers, window)
        self.receiver = ReplayReceiver(numbers)
        self.steps = 0

    def _load(self, s: State) -> None:
        m, tx, rx = self.numbers, self.sender, self.receiver
        tx.acked, tx.pos, tx.fresh, tx.next = s.acked % m, s.pos % m, s.fresh % m, s.next % m
        tx.epoch, tx.unlike = s.epoch, 0
        rx.ack, rx.nak_id, rx.pending, rx.unanswered = 0, 0, s.pending, s.unanswered

    def moves(self, s: State) -> Iterator[tuple[str, State, str]]:
        """Every event that can happen now: its name, the state after it, and what is wrong with it."""
        self._load(s)
        if self.sender.room:
            yield "new", s._replace(next=s.next + 1), ""
        if len(s.forth) < self.depth:
            yield "send", self.send(s, True), ""
            if s.pos != s.next:
                yield "send control", self.send(s, False), ""
        if len(s.back) < self.depth:
            yield "answer", s._replace(back=(*s.back, (0, 0))), ""
        if s.forth:
            yield "lose forth", s._replace(forth=s.forth[1:]), ""
            yield "hear forth", *self.hear_forth(s)
        if s.back:
            yield "lose back", s._replace(back=s.back[1:]), ""
            yield "hear back", *self.hear_back(s)

    def send(self, s: State, may: bool) -> State:
        """The sender puts a flit on the wire."""
        payload = may and s.pos != s.next
        flit = (payload, s.pos if payload else s.pos - 1, s.epoch)
        fresh = s.fresh + (payload and s.pos == s.fresh)
        return s._replace(pos=s.pos + payload, fresh=fresh, forth=(*s.forth, flit))

    def hear_forth(self, s: State) -> tuple[State, str]:
        """The receiver hears the oldest flit."""
        self.steps += 1
        self._load(s)
        (payload, place, epoch), forth = s.forth[0], s.forth[1:]
        wrong = "" if s.pending or epoch == 0 else "not pending under another epoch: the decided rule would nak"
        did = self.receiver.hear(payload, place % self.numbers, epoch, True)
        s = s._replace(forth=forth, pending=self.receiver.pending, unanswered=self.receiver.unanswered)
        if did == "gap":
            s = s._replace(
                epoch=(s.epoch - 1) % NAK_IDS,
                forth=tuple((p, n, (e - 1) % NAK_IDS) for p, n, e in s.forth),
                back=tuple((a, (k - 1) % NAK_IDS) for a, k in s.back),
            )
        if did == "deliver":
            wrong = wrong or ("" if place == 1 else f"delivers {place}, not 1")
            s = State(
                s.acked - 1,
                s.pos - 1,
                s.fresh - 1,
                s.next - 1,
                s.epoch,
                s.pending,
                s.unanswered,
                tuple((p, n - 1, e) for p, n, e in s.forth),
                tuple((a - 1, k) for a, k in s.back),
            )
        return s, wrong or (f"{did} on a link without repeats" if did in ("duplicate", "spurious") else "")

    def hear_back(self, s: State) -> tuple[State, str]:
        """The sender hears the oldest answer."""
        self.steps += 1
        self._load(s)
        (ack, nak_id), back = s.back[0], s.back[1:]
        tx, m = self.sender, self.numbers
        wrong = "" if (nak_id - s.epoch) % NAK_IDS < 2 else "a nak id beyond the one after the epoch"
        events = tx.hear(ack % m, nak_id)
        acked = s.acked + (tx.acked - s.acked) % m
        if acked > 0:
            wrong = f"takes {acked} as acknowledged, which was never accepted"
        if "bad_ack" in events:
            wrong = "a bad acknowledgement"
        return s._replace(acked=acked, pos=acked + (tx.pos - acked) % m, epoch=tx.epoch, back=back), wrong

    def good(self, s: State, fine: set[State]) -> str:
        """A run without loss from `s`: everything must arrive and be known to have arrived."""
        path = list[State]()
        for _ in range(8 * self.numbers):
            if s in fine:
                break
            path.append(s)
            while s.forth:
                s, wrong = self.hear_forth(s)
            s = s._replace(back=(*s.back, (0, 0)))
            while s.back:
                s, wrong = self.hear_back(s)
            if s.acked == s.next - 1 == 0:
                break
            s = self.send(s, True)
        else:
            return "a good run does not deliver everything: hangs"
        fine.update(path)
        return ""

    def traces(self) -> list[list[str]]:
        """Sequences of events from the start that together lead through every reachable state."""
        origin: dict[State, tuple[State | None, str]] = {State(): (None, "")}
        work, inner = deque([State()]), set[State]()
        while work:
            s = work.popleft()
            for name, after, _ in self.moves(s):
                if after not in origin:
                    origin[after] = (s, name)
                    work.append(after)
                    inner.add(s)
        found = list[list[str]]()
        for leaf in origin.keys() - inner:
            trace = list[str]()
            at: State | None = leaf
            while at is not None:
                at, name = origin[at]
                trace.insert(0, name)
            found.append(trace[1:])
        return sorted(found)

    def run(self, most: int = 5_000_000) -> Found:
        """Search all states. Stops at the first thing that is wrong, or at `most` states."""
        started = time.monotonic()
        origin: dict[State, tuple[State | None, str]] = {State(): (None, "")}
        work, fine = deque([State()]), set[State]()
        wrong, last = "", State()
        while work and not wrong:
            last = s = work.popleft()
            wrong = self.good(s, fine)
            for name, after, bad in self.moves(s):
                if after not in origin:
                    origin[after] = (s, name)
                    work.append(after)
                if bad and not wrong:
                    wrong, last = f"{name}: {bad}", s
            if len(origin) > most:
                wrong = wrong or f"more than {most:,} states"
        trace = list[str]()
        at: State | None = last if wrong else None
        while at is not None:
            at, name = origin[at]
            trace.insert(0, name)
        return Found(len(origin), self.steps, time.monotonic() - started, wrong, trace[1:])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="verif.checks.link_search", description="Search the replay rules.")
    parser.add_argument("--numbers", type=int, default=8)
    parser.add_argument("--window", type=int, default=3)
    parser.add_argument("--depth", type=int, default=2, help="flits in each FIFO")
    parser.add_argument("--most", type=int, default=5_000_000, help="states after which it gives up")
    options = parser.parse_args(arguments)
    found = Search(options.numbers, options.window, options.depth).run(options.most)
    print(f"{found.states:,} states, {found.steps:,} flits heard, {found.seconds:.1f} s: {found.wrong or 'all holds'}")
    if found.wrong:
        print(f"after {len(found.trace)} events, the last: {', '.join(found.trace[-40:])}")
    return bool(found.wrong)


if __name__ == "__main__":
    sys.exit(main())
