"""The golden special units against NumPy, exact fractions and searches element by element."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.contract.isa import SHUFFLE_KEEP
from verif.agents.values import random_codes
from verif.golden.special import (
    ABSENT,
    bn_aggr,
    bn_stats,
    find_index8,
    match_replace8,
    max8,
    shuffle,
    transpose,
)

NAN = 0x7FC00000
FEW = st.sampled_from([0, 1 << 31, 1, 0x3F800000, 0xBF800000, 0x40000000, 0x7F800000, 0xFF800000, NAN, 0xFFC00001])
CODES = st.one_of(FEW, st.integers(0, 0xFFFFFFFF))


def bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def numbers(codes: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(codes).view(np.float32)


def test_max8_is_the_end_of_a_sort() -> None:
    x = np.random.default_rng(1).normal(size=(16, 100)).astype(np.float32)
    assert np.array_equal(numbers(max8(bits(x))), -np.sort(-x, axis=1)[:, :8])


def test_max8_of_special_numbers() -> None:
    row = np.array([[0, 1 << 31, 0xFF800001, 1 << 31, 0xFF800000, 0x7F800000, 0x7F800001, 0, 1, 0xFF800000]], np.uint32)
    wanted = [NAN, NAN, 0x7F800000, 1, 0, 0, 1 << 31, 1 << 31]
    assert max8(row)[0].tolist() == wanted, "NaN, infinity, smallest, +0 twice, -0 twice"


def _same(a: int, b: int) -> bool:
    """IEEE equality of codes."""
    if a & 0x7FFFFFFF > 0x7F800000 or b & 0x7FFFFFFF > 0x7F800000:
        return False
    return a == b or (a | b) & 0x7FFFFFFF == 0


@given(st.lists(CODES, min_size=8, max_size=24), st.lists(FEW, min_size=8, max_size=8), CODES)
@settings(max_examples=300, deadline=None)
def test_search_is_the_search_of_one_element_after_the_other(row: list[int], values: list[int], a: int) -> None:
    taken: list[int] = []
    positions = []
    for value in values:
        free = [i for i, code in enumerate(row) if _same(code, value) and i not in taken]
        taken += free[:1]
        positions.append(free[0] if free else ABSENT)
    x, v = np.array([row], np.uint32), np.array([values], np.uint32)
    assert find_index8(x, v)[0].tolist() == positions
    replaced = [a if i in taken else code for i, code in enumerate(row)]
    assert match_replace8(x, v, np.array([a], np.uint32))[0].tolist() == replaced


def test_the_largest_are_found_and_taken_out() -> None:
    """How the three are used: k largest elements, eight a round."""
    x = np.random.default_rng(2).integers(-20, 20, (8, 64)).astype(np.float32)
    least = bits(np.full(8, -np.inf))
    rest, found = bits(x), []
    for _ in range(3):
        top = max8(rest)
        positions = find_index8(rest, top)
        assert np.array_equal(np.take_along_axis(rest, positions.astype(np.int64), 1), top)
        rest = match_replace8(rest, top, least)
        found.append(numbers(top))
    assert np.array_equal(np.concatenate(found, axis=1), -np.sort(-x, axis=1)[:, :24])


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from([2, 8, 32]), st.sampled_from(["u1", "u2", "u4"]))
@settings(max_examples=40, deadline=None)
def test_transpose_moves_block_by_block(high: int, wide: int, block: int, dtype: str) -> None:
    x = np.random.default_rng(high).integers(0, 255, (high * block, wide * block)).astype(dtype)
    out = transpose(x, block)
    assert out.dtype == x.dtype
    for g in range(high):
        for c in range(wide):
            here = np.s_[g * block : (g + 1) * block, c * block : (c + 1) * block]
            assert np.array_equal(out[here], x[here].T)


@given(st.lists(st.integers(0, SHUFFLE_KEEP), min_size=32, max_size=32), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_shuffle_takes_the_partitions_that_the_mask_names(mask: list[int], blocks: int) -> None:
    x = np.arange(32 * blocks * 5, dtype=np.uint16).reshape(-1, 5)
    old = x + np.uint16(10000)
    out = shuffle(x, old, mask, 32)
    for p in range(32 * blocks):
        entry = mask[p % 32]
        wanted = old[p] if entry == SHUFFLE_KEEP else x[p // 32 * 32 + entry]
        assert np.array_equal(out[p], wanted)


def test_bn_stats_are_those_of_float64() -> None:
    rng = np.random.default_rng(3)
    for count in (2, 3, 7, 8, 9, 64, 511, 512):
        x = (rng.normal(size=(16, count)) * 3 + 100).astype(np.float32)
        out = numbers(bn_stats(bits(x))).astype(np.float64)
        for half in (0, 1):
            part = x[:, half::2].astype(np.float64)
            n, mean, spread = out[:, 3 * half : 3 * half + 3].T
            assert (n == part.shape[1]).all()
            assert np.abs(mean - part.mean(axis=1)).max() < 1e-5 * 100
            truth = part.var(axis=1) * part.shape[1]
            assert (np.abs(spread - truth) <= 3e-5 * truth + 1e-5 * part.shape[1]).all()


def test_bn_stats_of_small_integers_are_exact() -> None:
    """Powers of two as counts: every operation is exact, so the fractions are."""
    x = np.random.default_rng(4).integers(-50, 50, (8, 32))
    out = numbers(bn_stats(bits(x)))
    for row, got in zip(x.tolist(), out.tolist(), strict=True):
        for half in (0, 1):
            part = [Fraction(v) for v in row[half::2]]
            mean = sum(part) / len(part)
            assert [Fraction(v) for v in got[3 * half : 3 * half + 3]] == [
                len(part),
                mean,
                sum((v - mean) ** 2 for v in part),
            ]


def test_bn_stats_of_one_element_and_of_special_numbers() -> None:
    one = bn_stats(bits(np.array([[5.0], [-0.0], [np.nan]])))
    assert numbers(one[:2]).tolist() == [[1, 5, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
    assert one[2].tolist() == [0x3F800000, NAN, NAN, 0, 0, 0]
    infinite = bn_stats(bits(np.array([[1.0, 2.0, np.inf, 2.0]])))
    assert infinite[0].tolist() == [0x40000000, 0x7F800000, NAN, 0x40000000, 0x40000000, 0]


def test_bn_stats_never_fall_below_zero() -> None:
    x = random_codes(np.random.default_rng(5), (256, 33), "fp32", "narrow")
    spread = numbers(bn_stats(x))[:, 2::3]
    assert (spread >= 0).all()
    assert not np.signbit(spread).any()


def test_order_of_the_sums_of_bn_stats() -> None:
    """Element i goes to partial sum i mod 8: with a large and a small number, the order shows."""
    big, one = np.float32(2.0**24), np.float32(1)
    row = np.zeros(17, np.float32)  # element 0 is 0, so the differences are the elements
    row[2], row[8], row[16] = big, one, one
    mean = numbers(bn_stats(bits(row[None])))[0, 1]
    inverse = np.float32(1) / np.float32(9)
    assert mean == np.float32(2.0**24 + 2) * inverse, "1 + 1 in partial sum 0 before 2^24 of partial sum 2"
    row[8], row[10], row[16] = 0, one, one
    assert numbers(bn_stats(bits(row[None])))[0, 1] == big * inverse, "2^24 + 1 = 2^24 in partial sum 2; + 1 is lost"


def test_bn_aggr_joins_what_bn_stats_gave() -> None:
    rng = np.random.default_rng(6)
    x = (rng.normal(size=(16, 1500)) * 2 - 7).astype(np.float32)
    parts = np.concatenate([bn_stats(bits(x[:, i : i + 500])) for i in range(0, 1500, 500)], axis=1)
    mean, variance = numbers(bn_aggr(parts)).astype(np.float64).T
    assert np.abs(mean - x.astype(np.float64).mean(axis=1)).max() < 1e-5
    assert np.abs(variance - x.astype(np.float64).var(axis=1)).max() < 1e-4


def test_bn_aggr_of_nothing_and_of_one() -> None:
    empty = bits(np.array([[0.0, 9.0, 3.0, -0.0, 2.0, 1.0]]))
    assert bn_aggr(empty)[0].tolist() == [0, 0]
    one = bits(np.array([[4.0, 2.5, 8.0]]))
    assert numbers(bn_aggr(one))[0].tolist() == [2.5, 2.0]
    with_empty = bits(np.array([[4.0, 2.5, 8.0, 0.0, 100.0, 0.0]]))
    assert numbers(bn_aggr(with_empty))[0].tolist() == [2.5, 2.0], "an empty part changes nothing"


def test_bn_aggr_of_exact_numbers() -> None:
    """Counts whose sums are powers of two: all steps are exact."""
    parts = bits(np.array([[2.0, 1.0, 3.0, 2.0, 5.0, 7.0, 4.0, 2.0, 1.0]]))
    # means 1 and 5 of 2 each: 3, spread 10 + 16 * 2 * 0.5 = 26; with 2 of 4: 2.5, spread 27 + 1 * 4 * 0.5 = 29
    assert numbers(bn_aggr(parts))[0].tolist() == [2.5, 29 / 8]
