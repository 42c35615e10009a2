"""Faults at the markers of two whole ports, one at a time: `python -m verif.checks.link_markers`.

The flit before a marker or the one after it refused, the marker itself wrong on one lane or on all, and mixtures, each
while the sender is in a chosen state. link_placed does the same for the states that a port without lanes has.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence

from rtl.contract.link import MARKER_INTERVAL_FLITS
from rtl.contract.link_config import LinkConfig
from sim.build import build
from sim.native.ports import PAIR_SOURCES, LinkEnd, NativeLink, Wires

__all__ = ["EVENTS", "NARROW", "STATES", "Cell", "main", "marked", "open_link"]

NARROW = LinkConfig(window_flits=15, sequence_numbers=32)
"""A window that is full, and numbers that wrap, all the time; with spare lanes."""

EVENTS = (
    "marker, one lane",
    "flit before",
    "marker, all lanes",
    "flit after",
    "marker and 20 flits",
    "flits before and after",
    "two markers",
)
"""Every second one leaves the marker alone: 2 misses among 4 markers and a lane is dead."""
STATES = ("idle", "streaming", "in replay", "window full", "wrap")
Cell = tuple[str, str, int]
"""Event, state of the sender, which end it is."""

_LEAD_FLITS = 70  # an event begins so long before its marker
_REST_FLITS = 120  # until nothing of it is left
_TRIP_FLITS = 9  # from a refused flit to its replay
_OUTAGE_FLITS = 20  # more than the window


def state_of(end: LinkEnd, cfg: LinkConfig) -> str:
    """What a sender did when its last marker went."""
    if end.in_flight == 0:
        return "idle"
    if end.replaying:
        return "in replay"
    if end.in_flight >= cfg.window_flits:
        return "window full"
    return "wrap" if end.number in (0, cfg.sequence_numbers - 1) else "streaming"


def open_link(cfg: LinkConfig = NARROW, *, plant: str = "", planted: bool = False, seed: int = 1) -> NativeLink:
    """Two ports with requests and responses of three classes; `planted`: the build that has faults."""
    built = build("port_lanes", cfg, kind="native", options={"form": "structural"}, planted=planted or bool(plant),
                  extra_cpp=PAIR_SOURCES)  # fmt: skip
    wires = Wires(packet_bytes=256, classes=3, responses=True, delay_flits=1, seed=seed)
    return NativeLink(built.binary, cfg, wires, plant=built.plant(plant))


class _Placer:
    """Runs the link to a marker and puts faults there."""

    def __init__(self, link: NativeLink, cfg: LinkConfig, rng: random.Random):
        self.link, self.cfg, self.rng = link, cfg, rng
        self.lanes = cfg.lanes + cfg.spare_lanes

    def until(self, end: int, since: int, sending: bool) -> None:
        """So many flits after a marker of this end."""
        while (left := since - self.link.end(end).since) > 0:
            self.link.run(left * self.cfg.flit_cycles, sending=sending, milliseconds=60_000)

    def to_wrap(self, end: int) -> None:
        """Pauses until the numbers will wrap at the next marker, if every flit till then has a new one."""
        numbers = self.cfg.sequence_numbers
        while (now := self.link.end(end)).since < MARKER_INTERVAL_FLITS - 3 * _LEAD_FLITS:
            if (now.newest + MARKER_INTERVAL_FLITS - now.since + 1) % numbers <= 2:
                break
            self.link.run(self.rng.randrange(5, 40) * self.cfg.flit_cycles, sending=False)
            self.link.run(40 * self.cfg.flit_cycles, sending=True)

    def past(self, end: int, sending: bool) -> LinkEnd:
        """The end just after its next marker."""
        before = self.link.end(end).markers
        while (now := self.link.end(end)).markers == before:
            self.link.run(self.cfg.flit_cycles, sending=sending)
        return now

    def place(self, event: str, end: int, state: str) -> Cell:
        """One event, `state` being what is wanted; returns what it was."""
        link = self.link
        if state == "wrap":
            self.to_wrap(end)
        self.until(end, MARKER_INTERVAL_FLITS - _LEAD_FLITS - self.rng.randrange(100), True)
        here = link.end(end)
        border = here.flits + MARKER_INTERVAL_FLITS - here.since  # the first flit after the marker
        if event in ("flit before", "flits before and after"):
            link.refuse(end, border - 1)
        if event in ("flit after", "flits before and after"):
            link.refuse(end, border)
        if event == "marker and 20 flits":
            link.refuse(end, border - self.rng.randrange(1, _OUTAGE_FLITS), _OUTAGE_FLITS)
        if event == "marker, one lane":
            link.damage_markers(end, 1 << self.rng.randrange(self.lanes))
        elif event in ("marker, all lanes", "marker and 20 flits", "two markers"):
            link.damage_markers(end, (1 << self.lanes) - 1, 1 + (event == "two markers"))
        if state == "in replay":
            link.refuse(end, border - _TRIP_FLITS - self.rng.randrange(6))
        elif state == "window full":  # nothing is acknowledged meanwhile
            link.refuse(1 - end, link.end(1 - end).flits + border - here.flits - 24, 26)
        was = state_of(self.past(end, state != "idle"), self.cfg)
        if event == "two markers":
            self.past(end, True)
        self.link.run(_REST_FLITS * self.cfg.flit_cycles, sending=True, milliseconds=60_000)
        return event, was, end


def marked(link: NativeLink, count: int, seed: int, cfg: LinkConfig = NARROW) -> Counter[Cell]:
    """`count` events, by cell; AssertionError if anything is lost, doubled, reordered or altered, or needs more than a
    replay; only two wrong markers in a row may lead to ALIGN."""
    placer = _Placer(link, cfg, random.Random(seed))
    for _ in range(100):
        link.run(50 * cfg.flit_cycles, sending=False)
        if link.up:
            break
    assert link.up, "the link does not come up"
    link.run(200 * cfg.flit_cycles, sending=True, milliseconds=60_000)
    seen: Counter[Cell] = Counter()
    before = link.counts()
    for n in range(count):
        event, end = EVENTS[n // 2 % len(EVENTS)], n % 2
        state = placer.rng.choice(STATES)
        asked = sum(link.end(e).refused for e in (0, 1))
        cell = placer.place(event, end, state)
        seen[cell] += 1
        after = link.counts()
        asked = sum(link.end(e).refused for e in (0, 1)) - asked
        told = f"event {n}: {cell}: {asked} flits refused, {before}, {after}"
        assert link.up and after.width == cfg.lanes, told
        assert after.lost == after.duplicated == after.reordered == after.corrupted == after.unresolved == 0, told
        assert after.spurious == after.downs == 0, told
        if event == "two markers":
            assert after.retrained > before.retrained, told
        else:
            assert after.refused - before.refused == asked and after.retrained == before.retrained, told
        before = after
    for _ in range(2000):
        if link.counts().outstanding == 0:
            break
        link.run(50 * cfg.flit_cycles, sending=False)
    assert link.counts().outstanding == 0, f"packets never came: {link.counts()}"
    return seen


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the cross; 1 if a cell of it is empty."""
    parser = argparse.ArgumentParser(prog="verif.checks.link_markers", description="Faults at markers.")
    parser.add_argument("--count", type=int, default=1400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    link = open_link(seed=options.seed)
    try:
        seen = marked(link, options.count, options.seed)
        refused = link.counts().refused
    finally:
        link.close()
    print(f"{sum(seen.values()):,} events at markers with {refused:,} refused flits, nothing lost; by sending end:")
    print(f"{'':24}" + "".join(f"{s:>14}" for s in STATES))
    for event in EVENTS:
        print(f"{event:24}" + "".join(f"{seen[event, s, 0]:>8} {seen[event, s, 1]:>5}" for s in STATES))
    empty = [(event, s, e) for event in EVENTS for s in STATES for e in (0, 1) if not seen[event, s, e]]
    for cell in empty:
        print(f"never: {cell}", file=sys.stderr)
    return 1 if empty else 0


if __name__ == "__main__":
    sys.exit(main())
