"""Refused flits one at a time, each in a chosen state of the protocol: `python -m verif.checks.link_placed`.

At error rates such as 1e-6 a run of any length sees hardly any; what matters is where each of them falls: the cross of
the sender's state, its end and what the flit carried. link_markers does the same at the markers of the lanes.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence

from rtl.contract.link import DLP, DLP_AT, DLP_BYTES, FLIT_HEADER, FLIT_HEADER_BYTES, PacketOpcode, Usage
from sim.link import PortDevice
from verif.checks.port_pair import SMALL, Pair, saturate, traffic

__all__ = ["DELAY_FLITS", "STATES", "Cell", "cells", "main", "placed"]

STATES = ("idle", "streaming", "in replay", "window full", "wrap", "retrain")
Cell = tuple[str, str, int]
"""State, what the flit carries, which end sends it."""
DELAY_FLITS = 10
"""One way: a round trip that fills the window of SMALL."""
_REST_FLITS = 60  # until nothing of the last one is left
_WAIT_FLITS = 2000  # for a state to come


def cells() -> list[Cell]:
    """All that there can be: an idle end sends NOPs, one that is not up control flits, any other payload."""
    carried = dict.fromkeys(STATES, ("request", "response")) | {"idle": ("NOP",), "retrain": ("control",)}
    return [(state, what, end) for state in STATES for what in carried[state] for end in (0, 1)]


def _carries(flit: bytes, usage: int) -> str:
    if usage != Usage.PAYLOAD:
        return "NOP" if usage == Usage.NOP else "control"
    return ("request", "response")[FLIT_HEADER.unpack(int.from_bytes(flit[:FLIT_HEADER_BYTES], "little"))["kind"]]


class _Placer:
    """A channel that refuses one flit when it belongs to the cell that is wanted."""

    def __init__(self, pair: Pair, rng: random.Random):
        self.pair = pair
        self.rng = rng
        self.newest = [0, 0]
        self.wanted: Cell | None = None
        self.provoke = False  # refuse flits until a replay, or a retrain, is under way

    def states(self, end: int, dlp: dict[str, int]) -> set[str]:
        """What the sender of a flit with this DLP is doing."""
        status = self.pair.ends[end].status()
        if not status["up"]:
            return {"retrain"} if status["state"] in ("retrain", "handshake") else set()
        if dlp["usage"] != Usage.PAYLOAD:
            return {"idle"} if status["in_flight"] == 0 else set()
        found = {"streaming"}
        numbers = self.pair.ends[end].cfg.sequence_numbers
        ahead = (dlp["seq"] - self.newest[end]) % numbers
        if 0 < ahead < numbers // 2:
            self.newest[end] = dlp["seq"]
        else:
            found.add("in replay")
        if dlp["seq"] in (numbers - 1, 0):
            found.add("wrap")
        if status["in_flight"] >= self.pair.ends[end].cfg.window_flits:
            found.add("window full")
        return found

    def __call__(self, time: int, end: int, flit: bytes) -> bytes | None:
        dlp = DLP.unpack(int.from_bytes(flit[DLP_AT : DLP_AT + DLP_BYTES], "big"))
        states = self.states(end, dlp)
        if self.wanted is None or end != self.wanted[2]:
            return flit
        state, carries, _ = self.wanted
        if state in states and carries == _carries(flit, dlp["usage"]) and self.rng.random() < 0.4:
            self.wanted = None
            return None
        if state == "in replay" and "streaming" in states and state not in states:
            if self.provoke or self.rng.random() < 0.02:  # one replay need not have a flit of the kind that is wanted
                self.provoke = False
                return None
        return flit


def placed(pair: Pair, count: int, seed: int) -> Counter[Cell]:
    """`count` refused flits, by cell; AssertionError if anything is lost, doubled, reordered or altered."""
    rng = random.Random(seed)
    channel = _Placer(pair, rng)
    pair.channel = channel
    pair.up()
    seen: Counter[Cell] = Counter()
    by_state = [[cell for cell in cells() if cell[0] == state] for state in STATES]
    for n in range(count):
        same = by_state[n % len(STATES)]
        cell = same[n // len(STATES) % len(same)]
        state = cell[0]
        channel.provoke = True
        if state == "retrain":
            pair.ends[rng.randrange(2)].disable()
            pair.run(2)
            for end in pair.ends:
                end.disable(False)
            pair.got = [{}, {}]
            pair.sent = [{}, {}]
        channel.wanted = cell
        for _ in range(_WAIT_FLITS):
            if channel.wanted is None:
                break
            if state in ("idle", "retrain"):
                pair.run(1)
            elif state == "window full":
                saturate(pair, 1, 448, PacketOpcode.WRITE if cell[1] == "request" else PacketOpcode.READ_RESPONSE)
            else:
                traffic(pair, rng.randrange(1 << 30), 1)
        else:
            raise AssertionError(f"{cell} never came")
        seen[cell] += 1
        pair.up()
        if state == "retrain":  # a new session: what was under way is reported, not delivered
            pair.run(_REST_FLITS)
            pair.got = [{}, {}]
            pair.sent = [{}, {}]
        pair.drain(3000)
        pair.run(rng.randrange(_REST_FLITS))
        assert pair.whole(), f"{n}: {state}: {[end.status() for end in pair.ends]}"
    return seen


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the cross; 1 if a cell of it is empty."""
    parser = argparse.ArgumentParser(prog="verif.checks.link_placed", description="Refuse single flits.")
    parser.add_argument("--count", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with PortDevice(SMALL, seed=1) as a, PortDevice(SMALL, seed=2) as b:
        seen = placed(Pair((a, b), delay=DELAY_FLITS), options.count, options.seed)
    print(f"{sum(seen.values()):,} refused flits, nothing lost; by sending end:")
    for state, carries in dict.fromkeys(cell[:2] for cell in cells()):
        print(f"{state:12} {carries:9}" + "".join(f"{seen[state, carries, end]:>6}" for end in (0, 1)))
    return 0 if all(seen[cell] for cell in cells()) else 1


if __name__ == "__main__":
    sys.exit(main())
