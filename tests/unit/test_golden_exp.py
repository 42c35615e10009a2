"""The golden exp against mpmath: every BF16 number, dense FP32 numbers, the ends of the range, differences."""

import ml_dtypes
import numpy as np
import pytest
from mpmath import mp

from verif.golden.exp import exp

ZERO = np.zeros(1, np.uint32)
BOUND_ULP = 0.53  # docs/exp.md


def ulps(codes: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Distance of results from exp(d) in units of the last place of the truth; finite d whose exp FP32 can hold."""
    found = []
    with mp.workprec(100):
        limit = mp.mpf(2) ** 128
        for code, value in zip(codes, d.astype(np.float64), strict=True):
            truth = mp.exp(mp.mpf(value))
            got = limit if code == 0x7F800000 else mp.mpf(float(code.view(np.float32)))
            place = mp.mpf(2) ** (max(int(mp.floor(mp.log(truth, 2))), -126) - 23)
            found.append(0.0 if truth >= limit and got == limit else float(abs(got - truth) / place))
    return np.array(found)


def test_every_bf16_number_is_correctly_rounded_or_one_ulp_away() -> None:
    x = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    with np.errstate(all="ignore"):
        got = exp(x, ZERO).view(np.float32).astype(ml_dtypes.bfloat16)
        values = x.view(np.float32)
    finite = np.isfinite(values)
    near = finite & (np.abs(values) < 120)
    with mp.workprec(100):
        truth = [mp.exp(mp.mpf(float(v))) for v in values[near]]
    # Two roundings, to 53 bits and to 8, would agree with one but at ties, and no truth is near one.
    with np.errstate(over="ignore"):
        want = np.array([float(t) for t in truth]).astype(np.float32).astype(ml_dtypes.bfloat16)
    assert (got[near].view(np.uint16) == want.view(np.uint16)).all()
    assert (got[finite & (values <= -120)] == 0).all()
    assert np.isposinf(got[finite & (values >= 120)].astype(np.float32)).all()
    assert np.isnan(got[np.isnan(values)].astype(np.float32)).all()
    order = np.argsort(values[finite], kind="stable")
    rising = got[finite][order].astype(np.float32)
    assert (rising[1:] >= rising[:-1]).all(), "not monotone"


@pytest.mark.parametrize(("low", "high"), [(-104, 89), (-88, -87), (-104, -103), (88, 89), (-1, 1), (-1e-3, 1e-3)])
def test_dense_numbers_stay_inside_the_bound(low: float, high: float) -> None:
    d = np.random.default_rng(11).uniform(low, high, 4000).astype(np.float32)
    assert ulps(exp(d.view(np.uint32), ZERO), d).max() <= BOUND_ULP


def test_every_exponent() -> None:
    rng = np.random.default_rng(5)
    rest = rng.integers(0, 1 << 23, (133, 20), np.uint32)
    codes = (np.arange(1, 134, dtype=np.uint32)[:, None] << np.uint32(23)) | rest
    for sign in (0, 1 << 31):
        d = (codes.ravel() | np.uint32(sign)).view(np.float32)
        d = d[(d < 89) & (d > -104)]
        assert ulps(exp(d.view(np.uint32), ZERO), d).max() <= BOUND_ULP


def test_the_difference_is_rounded_first() -> None:
    rng = np.random.default_rng(6)
    x, m = rng.uniform(-60, 60, (2, 4000)).astype(np.float32)
    assert ulps(exp(x.view(np.uint32), m.view(np.uint32)), x - m).max() <= BOUND_ULP


def test_it_rises_from_every_number_to_the_next() -> None:
    """Around the entries of the table, where one parabola ends and the next begins, and at random."""
    step = np.log(2) / 128
    entries = np.arange(-1000, 1000) * step
    ends = np.concatenate([entries[entries != 0], np.random.default_rng(7).uniform(-100, 88, 2000)])
    codes = ends.astype(np.float32).view(np.uint32)[:, None].astype(np.int64)
    around = (codes + np.arange(-40, 41)).astype(np.uint32)
    values = exp(around.ravel(), ZERO).view(np.float32).reshape(around.shape)
    up = np.where(codes < 1 << 31, values[:, 1:] - values[:, :-1], values[:, :-1] - values[:, 1:])
    assert (up >= 0).all()


def test_specials() -> None:
    inf, nan = np.float32(np.inf), np.float32(np.nan)
    x = np.array([inf, -inf, nan, 0, -0.0, inf, 1, 1, 200, -200, 1e-40], np.float32)
    m = np.array([0, 0, 0, 0, 0, inf, nan, -inf, 0, 0, 0], np.float32)
    want = np.array([inf, 0, nan, 1, 1, nan, nan, inf, inf, 0, 1], np.float32)
    got = exp(x.view(np.uint32), m.view(np.uint32))
    assert (got == np.where(np.isnan(want), np.uint32(0x7FC00000), want.view(np.uint32))).all()
