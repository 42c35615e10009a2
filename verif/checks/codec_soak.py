"""Damaged flits through the RTL decoder: none may be accepted altered. `python -m verif.checks.codec_soak`.

Each flit gets 1 to 40 wrong bytes: anywhere, in a run on one lane, or in a run on the wire.
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from rtl.contract.config import named
from rtl.contract.link import FLIT_BYTES, FLIT_INFO_BYTES
from sim.run.evaluate import evaluate
from verif.checks.coverage import Coverage

__all__ = ["damaged", "main", "soak"]

_BATCH = 100_000
_LANES = (1, 2, 4, 8, 16)
_PLACES = ("anywhere", "on the wire", *(f"on a lane of x{n}" for n in _LANES[1:]))
COVER = Coverage("codec.soak", [f"{place}: {end}" for place in _PLACES for end in ("repaired", "refused")])


def damaged(flits: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The flits [n, 256] with 1 to 40 wrong bytes each, and at which of `_PLACES` each has them."""
    count = len(flits)
    wrong = np.zeros((count, FLIT_BYTES), np.uint8)
    bytes_ = rng.integers(1, 41, count)
    step = np.where(rng.random(count) < 0.5, 1, np.array(_LANES)[rng.integers(0, len(_LANES), count)])
    anywhere = rng.random(count) < 0.4
    first = rng.integers(0, FLIT_BYTES, count)
    rows = np.arange(count)
    for k in range(40):
        live = bytes_ > k
        at = np.where(anywhere, rng.integers(0, FLIT_BYTES, count), (first + k * step) % FLIT_BYTES)
        wrong[rows[live], at[live]] ^= rng.integers(1, 256, count, dtype=np.uint8)[live]
    return flits ^ wrong, np.where(anywhere, 0, 1 + np.searchsorted(_LANES, step))


def soak(count: int, seed: int) -> tuple[int, int, int]:
    """(flits that were damaged, accepted and right, accepted and altered)."""
    rng = np.random.default_rng(seed)
    cfg = named("tiny")
    total = right = altered = 0
    while total < count:
        info = rng.integers(0, 256, (min(_BATCH, count - total), FLIT_INFO_BYTES), dtype=np.uint8)
        flits = evaluate("flit_encode", {"info": info}, cfg)["flit"]
        bad, places = damaged(flits, rng)
        seen = evaluate("flit_decode", {"flit": bad}, cfg)
        good = seen["valid"].astype(bool)
        same = (seen["flit"] == flits).all(axis=1)
        total += len(info)
        right += int((good & same).sum())
        altered += int((good & ~same).sum())
        for n, place in enumerate(_PLACES):
            COVER.hit(f"{place}: repaired", int((good & same)[places == n].sum()))
            COVER.hit(f"{place}: refused", int((~good)[places == n].sum()))
    COVER.require_all()
    return total, right, altered


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if one was accepted altered."""
    parser = argparse.ArgumentParser(prog="verif.checks.codec_soak", description="Damage flits.")
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    total, right, altered = soak(options.count, options.seed)
    print(
        f"{total:,} damaged flits: {right:,} repaired, {total - right - altered:,} refused, "
        f"{altered:,} accepted altered"
    )
    return int(altered != 0)


if __name__ == "__main__":
    sys.exit(main())
