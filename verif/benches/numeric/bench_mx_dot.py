"""MX dot products, codes to codes, against the golden model: every two formats that may meet, both kinds of scales.

tests/sim/test_numeric_mx.py pushes all pairs of elements and 2 x 10^5 rows a pair of formats through the same unit.
"""

from itertools import product
from typing import Any

import cocotb
import numpy as np

from rtl.contract.formats import FORMATS
from rtl.numeric.pe.mx_dot import MxDot
from verif.agents.bench import Bench
from verif.agents.dot_rows import FLAVOURS, accumulators, corner_rows, hard_rows
from verif.agents.elements import element_values, kinds
from verif.agents.pipe import push
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, expect_equal, note_outcomes
from verif.golden.mx import ELEMENT_FORMATS, SCALE_FORMATS, dot_product, mixes, mx_dot

_PLANTED = (
    "the sum is rounded before it becomes subnormal, and once more then",
    "a dot product rounds ties up, not to even",
    "bits below the guard bit are forgotten",
    "bits beyond 64 are forgotten",
    "the low limb borrows nothing from the high one",
    "a scale of 0xff is a number",
    "infinities of both signs make an infinity",
    "infinity times zero is infinity in a dot product",
    "a sum of zero has the sign of the first product",
    "a subnormal dot product becomes zero",
    "the fourth product is left out",
    "the sign of an E4M3FN scale does not count",
    "a NaN as an E4M3FN scale is a number",
    "a subnormal E4M3FN scale is a zero",
)

RUNS = (Run("mx_dot", faults=_PLANTED),)

PAIRS = [pair for pair in product(ELEMENT_FORMATS, repeat=2) if mixes(*pair)]
ROWS = 30  # of a flavour, a pair of formats, and a format of scales


def classes(fmt_a: str, fmt_b: str, scale_fmt: str) -> list[str]:
    """Special classes that a pair of formats can show, beside OUTCOMES of the dot product."""
    infinite = {FORMATS[f].infinities for f in (fmt_a, fmt_b)}
    some = ["exact zero", "scale is NaN", "zero elements"]
    some += (
        ["rounded to zero", "overflow"] if scale_fmt == "e8m0" else ["negative scale", "zero scale", "subnormal scale"]
    )
    if fmt_a != "e2m1" or fmt_b != "e2m1":
        some += ["NaN element"]
    if scale_fmt == "e8m0" and fmt_a != "e2m1" and fmt_b != "e2m1":
        some += ["tie"]
    if True in infinite:
        some += ["infinite product", "infinity times zero", "infinities of both signs"]
        some += ["infinity times zero scale"] if scale_fmt == "e4m3fn" else []
    return some


NAMES = [(a, b, s) for a, b in PAIRS for s in SCALE_FORMATS]
RESULTS = {"e8m0": OUTCOMES, "e4m3fn": ("zero", "normal", "nan")}
coverage = Coverage(
    "mx_dot",
    [f"{a} x {b}, {s}: {c}" for a, b, s in NAMES for c in (*RESULTS[s], *classes(a, b, s))]
    + ["sum beyond 64 bits", "bits beyond 64 decide", "don't care above E2M1", "formats change each cycle", *OUTCOMES],
)


def note(rows: dict[str, Any], fmt_a: str, fmt_b: str, scale_fmt: str) -> None:
    """Bins of rows of one pair of formats, of the dot product before the addition."""
    dots = dot_product(rows["a"], rows["b"], rows["sa"], rows["sb"], fmt_a, fmt_b, scale_fmt)
    left, right = kinds(rows["a"], fmt_a), kinds(rows["b"], fmt_b)
    exact = element_values(fmt_a)[rows["a"]] * element_values(fmt_b)[rows["b"]]
    total = exact.sum(axis=1)
    finite = ~np.isin(left, ("nan", "infinity")).any(axis=1) & ~np.isin(right, ("nan", "infinity")).any(axis=1)
    infinite = ((left == "infinity") & (right != "nan")) | ((right == "infinity") & (left != "nan"))
    by_zero = infinite & ((left == "zero") | (right == "zero"))
    negative = (rows["a"] >> (FORMATS[fmt_a].bits - 1) & 1) ^ (rows["b"] >> (FORMATS[fmt_b].bits - 1) & 1)
    scales = np.stack([rows["sa"], rows["sb"]], axis=1)
    size = scales & 0x7F
    with np.errstate(all="ignore"):
        near = total.astype(np.float32).astype(np.float64)
        half = np.spacing(np.abs(near).astype(np.float32)).astype(np.float64) / 2
    is_nan = (scales == 255).any(axis=1) if scale_fmt == "e8m0" else (size == 127).any(axis=1)
    fine = finite & ~is_nan
    found = {
        "exact zero": fine & (exact != 0).any(axis=1) & (dots == 0) & (total == 0),
        "scale is NaN": is_nan & finite,
        "zero elements": fine & (exact == 0).all(axis=1),
        "rounded to zero": fine & (total != 0) & (dots & 0x7FFFFFFF == 0),
        "overflow": fine & (dots & 0x7FFFFFFF == 0x7F800000),
        "negative scale": fine & (scales >> 7 == 1).any(axis=1) & (total != 0),
        "zero scale": fine & (size == 0).any(axis=1),
        "subnormal scale": fine & ((size > 0) & (size < 8)).any(axis=1) & (total != 0),
        "NaN element": ((left == "nan") | (right == "nan")).any(axis=1),
        "tie": fine & (np.abs(total - near) == half) & (dots & 0x7F800000 > 0),
        "infinite product": (infinite & ~by_zero).any(axis=1) & (dots & 0x7FFFFFFF == 0x7F800000),
        "infinity times zero": by_zero.any(axis=1),
        "infinities of both signs": (infinite & (negative == 1)).any(axis=1) & (infinite & (negative == 0)).any(axis=1),
        "infinity times zero scale": infinite.any(axis=1) & (size == 0).any(axis=1),
    }
    name = f"{fmt_a} x {fmt_b}, {scale_fmt}: "
    for what in classes(fmt_a, fmt_b, scale_fmt):
        coverage.when(found[what].any(), name + what)
    results = Coverage("results", RESULTS[scale_fmt])
    note_outcomes(results, dots)
    for what, count in results.hits.items():
        coverage.hit(name + what, count)
    beyond = finite & (np.abs(total) >= 2.0**32)
    coverage.when(beyond.any(), "sum beyond 64 bits")
    last = finite & (np.abs(exact) == 2.0**-32).any(axis=1)
    coverage.when((beyond & last).any(), "bits beyond 64 decide")
    coverage.when(fmt_a == "e2m1" and (rows["a"] > 15).any(), "don't care above E2M1")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def multiplies_rows_of_every_two_formats(dut: Any) -> None:
    """All flavours of rows, in an order in which formats and scales change every cycle."""
    bench = Bench(dut)
    await bench.start()
    rng = bench.rng
    parts: list[dict[str, Any]] = []
    for fmt_a, fmt_b, scale_fmt in NAMES:
        drawn = [hard_rows(rng, ROWS, fmt_a, fmt_b, scale_fmt, flavour) for flavour in FLAVOURS]
        drawn.append(corner_rows(fmt_a, fmt_b, scale_fmt))
        rows: dict[str, Any] = {
            n: np.concatenate(v) for n, v in zip(("a", "b", "sa", "sb"), zip(*drawn, strict=True), strict=True)
        }
        note(rows, fmt_a, fmt_b, scale_fmt)
        rows["acc"] = accumulators(rng, dot_product(*rows.values(), fmt_a, fmt_b, scale_fmt))
        wanted = mx_dot(*rows.values(), fmt_a, fmt_b, scale_fmt)
        words = {n: v.view("<u4")[:, 0] if v.ndim == 2 else v.astype(np.uint32) for n, v in rows.items()}
        fixed = {
            "fmt_a": FORMATS[fmt_a].code,
            "fmt_b": FORMATS[fmt_b].code,
            "scale_fmt": SCALE_FORMATS.index(scale_fmt),
        }
        words |= {n: np.full(len(wanted), v, np.uint32) for n, v in fixed.items()}
        parts.append({**words, "out": wanted})
    order = rng.permutation(sum(len(part["out"]) for part in parts))
    inputs = {n: np.concatenate([part[n] for part in parts])[order] for n in parts[0]}
    wanted = inputs.pop("out")
    note_outcomes(coverage, wanted)
    for part in np.array_split(np.arange(len(wanted)), 5):
        some = {n: v[part] for n, v in inputs.items()}
        expect_equal(await push(bench, some, "out", MxDot.LATENCY), wanted[part], some)
    coverage.hit("formats change each cycle")
    coverage.require_all()
