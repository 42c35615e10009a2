"""Rounding to BF16 in front of PSUM: the golden against an outside library, and its statistics."""

import ml_dtypes
import numpy as np
import pytest

from verif.golden.rounding import lane_bits, row_words, to_bf16

NEAREST, STOCHASTIC = 1, 2


def test_nearest_is_the_cast_of_an_outside_library() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 1 << 32, 200_000, dtype=np.uint32)
    codes = codes[(codes & 0x7FFFFFFF) <= 0x7F800000]  # sums have no NaN but 0x7fc00000
    codes = np.append(codes, np.uint32(0x7FC00000))
    with np.errstate(over="ignore"):
        want = codes.view(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    seen = to_bf16(codes[None, :], NEAREST, [0] * len(codes))[0]
    assert (seen >> 16 == want).all() and not (seen & 0xFFFF).any()


def test_random_rounding_takes_one_of_the_two_neighbours() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 0x7F800000, (16, 500), dtype=np.uint32)
    seen = to_bf16(codes, STOCHASTIC, row_words(7, 0, 3, 500))
    low = codes & np.uint32(0xFFFF0000)
    assert ((seen == low) | (seen == low + 0x10000)).all()
    assert (seen[codes == low] == low[codes == low]).all()


@pytest.mark.parametrize("share", [1 / 16, 1 / 2, 15 / 16])
def test_random_rounding_goes_up_as_often_as_what_is_cut(share: float) -> None:
    """Over elements, partitions, tickets and seeds alike, within five standard deviations."""
    code = np.uint32(0x40490000 + int(share * 65536))
    for many in (
        [to_bf16(np.full((128, 512), code), STOCHASTIC, row_words(1, 0, 5, 512))],
        [to_bf16(np.full((1, 1), code), STOCHASTIC, row_words(1, 0, n, 1)) for n in range(20_000)],
        [to_bf16(np.full((1, 1), code), STOCHASTIC, row_words(n, 0, 9, 1)) for n in range(20_000)],
    ):
        up = np.concatenate([x.ravel() for x in many]) == 0x404A0000
        assert abs(up.mean() - share) < 5 * (share * (1 - share) / len(up)) ** 0.5


def test_bits_of_neighbours_do_not_go_together() -> None:
    bits = lane_bits(row_words(3, 0, 0, 512), 128).astype(np.float64)
    for a, b in ((bits[:-1], bits[1:]), (bits[:, :-1], bits[:, 1:])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.02


def test_bits_belong_to_a_place_and_not_to_a_moment() -> None:
    assert row_words(5, 0, 2, 9)[:4] == row_words(5, 0, 2, 4)
    assert row_words(5, 0, 2, 4) != row_words(5, 0, 3, 4) != row_words(6, 0, 3, 4)
