"""Refused flits one at a time, each in a chosen state of the protocol: `python -m verif.checks.link_placed`.

At error rates such as 1e-6 a run of any length sees hardly any; what matters is where each of them falls.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence

from rtl.contract.link import DLP, DLP_AT, DLP_BYTES, Usage
from sim.link import PortDevice
from verif.checks.port_pair import SMALL, Pair, saturate, traffic

__all__ = ["DELAY_FLITS", "STATES", "main", "placed"]

STATES = ("idle", "streaming", "in replay", "window full", "wrap", "retrain")
DELAY_FLITS = 10
"""One way: a round trip that fills the window of SMALL."""
_REST_FLITS = 60  # until nothing of the last one is left
_WAIT_FLITS = 400  # for a state to come


class _Placer:
    """A channel that refuses one flit when its sender is in the state that is wanted."""

    def __init__(self, pair: Pair, rng: random.Random):
        self.pair = pair
        self.rng = rng
        self.newest = [0, 0]
        self.wanted = ""
        self.victim = 0
        self.provoke = False  # refuse flits until a replay, or a retrain, is under way

    def states(self, end: int, flit: bytes) -> set[str]:
        """What the sender of this flit is doing."""
        dlp = DLP.unpack(int.from_bytes(flit[DLP_AT : DLP_AT + DLP_BYTES], "big"))
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
        states = self.states(end, flit)
        if end != self.victim or not self.wanted:
            return flit
        if self.wanted in states and self.rng.random() < 0.4:
            self.wanted = ""
            return None
        if self.wanted == "in replay" and self.provoke and "streaming" in states:
            self.provoke = False
            return None
        return flit


def placed(pair: Pair, count: int, seed: int) -> Counter[str]:
    """`count` refused flits, by state; AssertionError if anything is lost, doubled, reordered or altered."""
    rng = random.Random(seed)
    channel = _Placer(pair, rng)
    pair.channel = channel
    pair.up()
    seen: Counter[str] = Counter()
    for n in range(count):
        state = STATES[n % len(STATES)]
        channel.victim = rng.randrange(2)
        channel.provoke = True
        if state == "retrain":
            pair.ends[rng.randrange(2)].disable()
            pair.run(2)
            for end in pair.ends:
                end.disable(False)
            pair.got = [{}, {}]
            pair.sent = [{}, {}]
        channel.wanted = state
        for _ in range(_WAIT_FLITS):
            if not channel.wanted:
                break
            if state in ("idle", "retrain"):
                pair.run(1)
            elif state == "window full":
                saturate(pair, 1, 448)
            else:
                traffic(pair, rng.randrange(1 << 30), 1)
        else:
            raise AssertionError(f"{state} never came")
        seen[state] += 1
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
    """Prints how many fell into each state."""
    parser = argparse.ArgumentParser(prog="verif.checks.link_placed", description="Refuse single flits.")
    parser.add_argument("--count", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with PortDevice(SMALL, seed=1) as a, PortDevice(SMALL, seed=2) as b:
        seen = placed(Pair((a, b), delay=DELAY_FLITS), options.count, options.seed)
    print(f"{sum(seen.values()):,} refused flits, nothing lost: " + ", ".join(f"{s} {n}" for s, n in seen.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
