"""MX dot products of the RTL against the golden model, in bulk. `python -m verif.checks.mx_dot --products 10000000`.

Every pair of codes of two formats alone in each of the four places, then rows of all flavours of
verif/agents/dot_rows.py: random ones, and those whose rounding is hard.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from rtl.contract.config import named
from sim.run.evaluate import evaluate
from verif.agents.dot_rows import FLAVOURS, accumulators, hard_rows
from verif.golden.mx import ELEMENT_FORMATS, dot_product, mixes, mx_dot

__all__ = ["MAIN_PAIRS", "OTHER_PAIRS", "every_pair", "main", "random_rows"]

_BATCH = 200_000
MAIN_PAIRS = [(a, b, "e8m0") for a, b in product(("e4m3fn", "e5m2", "e2m1"), repeat=2)] + [("e2m1", "e2m1", "e4m3fn")]
"""Formats of elements and scales of MXFP8, MXFP4, their mixes, and NVFP4."""

OTHER_PAIRS = [
    (a, b, s)
    for s in ("e8m0", "e4m3fn")
    for a, b in product(ELEMENT_FORMATS, repeat=2)
    if mixes(a, b) and (a, b, s) not in MAIN_PAIRS
]
"""The others that the unit takes: legacy E4M3, and E4M3FN scales of FP8."""


def _differences(rows: Sequence[np.ndarray], fmt_a: str, fmt_b: str, scale_fmt: str) -> int:
    a, b, sa, sb, acc = rows
    wanted = mx_dot(a, b, sa, sb, acc, fmt_a, fmt_b, scale_fmt)
    given = {"a": a, "b": b, "sa": sa, "sb": sb, "acc": acc}
    texts = {"fmt_a": np.array(fmt_a), "fmt_b": np.array(fmt_b), "scale_fmt": np.array(scale_fmt)}
    seen = evaluate("mx_dot", {**given, **texts}, named("tiny"))["out"]
    return int(np.count_nonzero(seen != wanted))


def every_pair(fmt_a: str, fmt_b: str) -> tuple[int, int]:
    """(rows, differences): all 256 x 256 codes as the only product that is not zero, in each place."""
    codes = np.arange(1 << 16, dtype=np.uint32)
    wrong = 0
    for place in range(4):
        a, b = np.zeros((2, codes.size, 4), np.uint8)
        a[:, place], b[:, place] = codes & 255, codes >> 8
        one = np.full(1, 127, np.uint8)
        wrong += _differences([a, b, one, one, np.zeros(1, np.uint32)], fmt_a, fmt_b, "e8m0")
    return 4 * codes.size, wrong


def random_rows(
    count: int, fmt_a: str, fmt_b: str, scale_fmt: str, seed: int, batch: int = _BATCH
) -> Iterator[tuple[int, int]]:
    """(rows so far, differences so far), batch by batch; a row is four products."""
    rng = np.random.default_rng([seed, ELEMENT_FORMATS.index(fmt_a), ELEMENT_FORMATS.index(fmt_b), len(scale_fmt)])
    done = wrong = 0
    while done < count:
        size = min(batch, count - done)
        shares = np.diff(np.linspace(0, size, len(FLAVOURS) + 1).astype(int))
        drawn = [
            hard_rows(rng, int(share), fmt_a, fmt_b, scale_fmt, flavour)
            for flavour, share in zip(FLAVOURS, shares, strict=True)
            if share
        ]
        a, b, sa, sb = (np.concatenate(part) for part in zip(*drawn, strict=True))
        acc = accumulators(rng, dot_product(a, b, sa, sb, fmt_a, fmt_b, scale_fmt))
        wrong += _differences([a, b, sa, sb, acc], fmt_a, fmt_b, scale_fmt)
        done += size
        yield done, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if a bit differs."""
    parser = argparse.ArgumentParser(prog="verif.checks.mx_dot", description="MX dot products, RTL against golden.")
    parser.add_argument("--products", type=int, default=10_000_000, help="rows of four products a pair of formats")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="legacy E4M3 and E4M3FN scales of FP8, too")
    options = parser.parse_args(arguments)
    failed = 0
    shown = sys.stderr.isatty()
    for fmt_a, fmt_b, scale_fmt in MAIN_PAIRS + (OTHER_PAIRS if options.all else []):
        begin, cpu = time.monotonic(), time.process_time()
        pairs, wrong_pairs = every_pair(fmt_a, fmt_b)
        done = wrong = 0
        for rows in random_rows(options.products, fmt_a, fmt_b, scale_fmt, options.seed):
            done, wrong = rows
            if shown:
                print(f"\r{fmt_a} x {fmt_b}, {scale_fmt}: {done:,} of {options.products:,}", end=" ", file=sys.stderr)
        if shown:
            print("\r", end="", file=sys.stderr)
        print(
            f"{fmt_a:>6} x {fmt_b:<6} {scale_fmt:>6} scales: {pairs:,} pairs, {wrong_pairs} differ; "
            f"{done:,} rows of four, {wrong} differ; "
            f"{time.monotonic() - begin:.0f} s, {time.process_time() - cpu:.0f} of CPU",
            flush=True,
        )
        failed += wrong_pairs + wrong
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
