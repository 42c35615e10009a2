"""Accuracy of the exp unit against mpmath: every BF16 number, and FP32 numbers where an error would be largest.

    python -m verif.accuracy.exp

prints the table of docs/exp.md; docs/accuracy.md has the unit beside the scalar engine's functions.
"""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
from mpmath import mp
from numpy.typing import NDArray

from rtl.contract.exp_table import INDEX_BITS
from verif.golden.exp import exp

__all__ = ["DENSE", "judge", "rows", "sets"]

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
DENSE = 20_000
"""Numbers in each set of FP32 numbers."""

_PRECISION = 100
_LOW, _HIGH = -104.0, 89.0  # beyond, every result is +0 or infinity


def _entries(rng: np.random.Generator, count: int, places: tuple[float, ...]) -> F32:
    """Numbers whose fraction lies about these places between an entry of the table and the next."""
    index = rng.integers(0, 1 << INDEX_BITS, count) + rng.choice(places, count)
    exact = (rng.integers(-20, 20, count) + index / (1 << INDEX_BITS)) * np.log(2)
    exact = exact[exact != 0]  # it has no neighbours among codes
    count = exact.size
    return (exact.astype(np.float32).view(np.int32) + rng.integers(-3, 4, count, np.int32)).view(np.float32)


def _exponents(rng: np.random.Generator, count: int) -> F32:
    """Every exponent of |d| < 128, both signs, results from the smallest to the largest."""
    fields = 134
    rest = rng.integers(0, 1 << 23, (2, fields, -(-count // (2 * fields))), np.uint32)
    sign = np.array([0, 1 << 31], np.uint32)[:, None, None]
    codes = sign | np.arange(fields, dtype=np.uint32)[None, :, None] << np.uint32(23) | rest
    d = codes.ravel().view(np.float32)
    return d[(d > _LOW) & (d < _HIGH)]


def sets(count: int = DENSE) -> Iterator[tuple[str, F32, F32]]:
    """Name, x and m of each set; all numbers are finite."""
    rng = np.random.default_rng(2026)
    codes = (np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)).view(np.float32)
    none = np.zeros(1, np.float32)
    yield "every finite BF16 number", codes[np.isfinite(codes)], none
    yield "every exponent", _exponents(rng, count), none
    for name, low, high in (
        ("the whole range", _LOW, _HIGH),
        ("softmax, -20 to 0", -20.0, 0.0),
        ("about 0", -0.01, 0.01),
        ("about overflow", 88.0, _HIGH),
        ("subnormal results", _LOW, -87.3),
    ):
        yield name, rng.uniform(low, high, count).astype(np.float32), none
    yield "ends of the table's entries", _entries(rng, count, (0.0,)), none
    third = 3**-0.5 / 2  # where (r - 0) (r - h/2) (r - h) is largest
    yield "worst places of the parabola", _entries(rng, count, (0.5 - third, 0.5 + third)), none
    x, m = rng.uniform(-52, 44, (2, count)).astype(np.float32)
    yield "differences that are rounded", x, m


def _nearest(truth: Any, bits: int, least: int) -> float:
    """The truth, positive, rounded once to `bits` significant bits, multiples of 2^least, or infinity."""
    place = max(int(mp.frexp(truth)[1]) - bits, least)
    value = mp.ldexp(mp.nint(mp.ldexp(truth, -place)), place)
    return float("inf") if value >= mp.mpf(2) ** 128 else float(value)


def judge(x: F32, m: F32) -> dict[str, Any]:
    """Figures of one set: every number of it through the golden model, against exp of the rounded difference."""
    x, m = np.broadcast_arrays(x, m)
    with np.errstate(all="ignore"):
        d = x - m
        order = np.argsort(d, kind="stable")
        d = d[order]
        codes = exp(x.view(np.uint32)[order], m.view(np.uint32)[order])
        got = codes.view(np.float32)
        narrow = got.astype(ml_dtypes.bfloat16).astype(np.float64)
    near = np.abs(d) < 128
    right = {8: int((got[~near] == np.where(d[~near] > 0, np.inf, 0)).sum())}
    right[24] = right[8]
    worst = 0.0
    relative: list[float] = []
    with mp.workprec(_PRECISION):
        top = mp.mpf(2) ** 128
        for value, code, result in zip(d[near].tolist(), got[near].tolist(), narrow[near].tolist(), strict=True):
            truth: Any = mp.exp(mp.mpf(value))
            right[24] += code == _nearest(truth, 24, -149)
            right[8] += result == _nearest(truth, 8, -133)
            if truth < top or code < float("inf"):
                place = mp.ldexp(1, max(int(mp.frexp(truth)[1]) - 24, -149))
                worst = max(worst, float(abs(min(mp.mpf(code), top) - truth) / place))
            if float(truth) >= 2.0**-126 and result < float("inf"):
                relative.append(float(abs(mp.mpf(result) / truth - 1)))
    return {
        "inputs": d.size,
        "bf16_correct": right[8] / d.size,
        "fp32_correct": right[24] / d.size,
        "fp32_ulp": worst,
        "bf16_mean_relative": float(np.mean(relative)) if relative else 0.0,
        "monotone": bool((got[1:] >= got[:-1]).all()),
    }


def rows(count: int = DENSE) -> list[dict[str, Any]]:
    """A row a set: name, number of inputs, shares of results rounded correctly to BF16 and in FP32, the largest
    distance from the truth in last places of FP32, the mean relative error in BF16, and whether results never fall."""
    return [{"set": name, **judge(x, m)} for name, x, m in sets(count)]


def main() -> None:
    """Print the rows as a Markdown table."""
    print("| set | inputs | correct in BF16 | correct in FP32 | FP32 ulp | mean relative error in BF16 | monotone |")
    print("|---|---|---|---|---|---|---|")
    for r in rows():
        shares = " | ".join(str(round(r[k] * r["inputs"])) for k in ("bf16_correct", "fp32_correct"))
        last = f"{r['fp32_ulp']:.4f} | {r['bf16_mean_relative']:.4%} | {'yes' if r['monotone'] else 'no'}"
        print(f"| {r['set']} | {r['inputs']} | {shares} | {last} |")


if __name__ == "__main__":
    main()
