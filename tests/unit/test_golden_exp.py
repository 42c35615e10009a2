"""The golden exp against mpmath: every BF16 number, dense FP32 numbers, ends of the range; and it never falls."""

import numpy as np
import pytest
from mpmath import mp

from rtl.contract import exp_table as numbers
from verif.accuracy.exp import judge, sets
from verif.golden.exp import exp, power

ZERO = np.zeros(1, np.uint32)
BOUND_ULP = 0.53  # docs/exp.md
BOUND_POWER = 49  # units of 2^-34, of which t, taken as exact here, has at most one
SETS = {name: (x, m) for name, x, m in sets(4000)}


@pytest.mark.parametrize("name", SETS)
def test_every_set_stays_inside_the_bound(name: str) -> None:
    found = judge(*SETS[name])
    assert found["fp32_ulp"] <= BOUND_ULP
    assert found["monotone"]
    assert found["fp32_correct"] >= 0.97
    assert found["bf16_correct"] >= 0.999


def test_every_bf16_number_is_correctly_rounded() -> None:
    found = judge(*SETS["every finite BF16 number"])
    assert (found["inputs"], found["bf16_correct"]) == (65280, 1.0)


def test_sets_reach_all_kinds_of_results() -> None:
    with np.errstate(all="ignore"):
        d = np.concatenate([x - m for x, m in SETS.values()])
    assert np.isfinite(d).all()
    fields = np.unique(d.view(np.uint32) >> np.uint32(23))
    assert set(range(134)) | {256 + f for f in range(134)} <= set(fields.tolist())


def test_the_power_is_as_near_as_its_analysis_says() -> None:
    """Over every entry of the table, with the places where the parabola is farthest from the curve."""
    third = 3**-0.5 / 2
    places = np.append(np.linspace(0, 1, 21), [0.5 - third, 0.5 + third]) * (2**numbers.REST_BITS - 1)
    f = ((np.arange(1 << numbers.INDEX_BITS) << numbers.REST_BITS)[:, None] + places.astype(np.int64)).ravel()
    with mp.workprec(120):
        truth = [mp.ldexp(mp.mpf(2) ** mp.ldexp(int(v), -numbers.T_BITS), numbers.POWER_BITS) for v in f]
        worst = max(abs(int(p) - t) for p, t in zip(power(f), truth, strict=True))
    assert worst <= BOUND_POWER - 1


def test_it_never_falls() -> None:
    """All steps are monotone by themselves but that from an entry of the table to the next: 128 cases.

    Rounding, cutting towards zero, sums and products of what is not negative never turn an order round.
    """
    starts = np.arange(1, (1 << numbers.INDEX_BITS) + 1, dtype=np.int64) << numbers.REST_BITS
    ends = power(starts - 1)
    assert (ends <= np.append(power(starts[:-1]), 2 << numbers.POWER_BITS)).all()
    assert min(numbers.C1, numbers.C2, *numbers.TABLE) > 0


def test_products_fit_64_bits() -> None:
    rest = (1 << numbers.REST_BITS) - 1
    slope = numbers.C1 + (rest * numbers.C2 >> numbers.T_BITS + numbers.C2_BITS - numbers.C1_BITS)
    rise = rest * slope >> numbers.C1_BITS
    assert ((1 << 24) - 1) * numbers.LOG2E < 1 << 64
    assert rest * slope < 1 << 64
    assert rise < 1 << numbers.REST_BITS
    assert max(numbers.TABLE) * rise < 1 << 64
    assert max(numbers.TABLE) + (max(numbers.TABLE) * rise >> numbers.T_BITS) < 2 << numbers.POWER_BITS


@pytest.mark.parametrize(
    ("d", "want"),
    [
        (0x42B17217, 0x7F7FFF84),  # the last finite result
        (0x42B17218, 0x7F800000),
        (0x43000000, 0x7F800000),  # 128
        (0x7F7FFFFF, 0x7F800000),
        (0xC2AEAC4F, 0x00800026),  # the last normal result
        (0xC2AEAC50, 0x007FFFE6),
        (0xC2CFF1B4, 0x00000001),  # the last result above 2^-150
        (0xC2CFF1B5, 0x00000000),
        (0xC3000000, 0x00000000),
        (0xFF7FFFFF, 0x00000000),
        (0x33000000, 0x3F800000),  # 2^-25
        (0x33C00000, 0x3F800001),  # 1.5 x 2^-24
        (0xB2800000, 0x3F800000),  # -2^-26
        (0xB3400000, 0x3F7FFFFF),  # -1.5 x 2^-25
    ],
)
def test_limits(d: int, want: int) -> None:
    assert exp(np.array([d], np.uint32), ZERO)[0] == want


def test_specials() -> None:
    inf, nan = np.float32(np.inf), np.float32(np.nan)
    x = np.array([inf, -inf, nan, 0, -0.0, inf, -inf, 1, 1, 1, 200, -200, 1e-40], np.float32)
    m = np.array([0, 0, 0, 0, 0, inf, -inf, nan, -inf, inf, 0, 0, 0], np.float32)
    want = np.array([inf, 0, nan, 1, 1, nan, nan, nan, inf, 0, inf, 0, 1], np.float32)
    got = exp(x.view(np.uint32), m.view(np.uint32))
    assert (got == np.where(np.isnan(want), np.uint32(0x7FC00000), want.view(np.uint32))).all()


def test_m_broadcasts_and_shapes_stay() -> None:
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    got = exp(x.view(np.uint32), np.ones(1, np.float32).view(np.uint32))
    assert got.shape == x.shape
    assert np.allclose(got.view(np.float32), np.exp(x - 1), rtol=1e-6)
