"""Golden MX dot product against exact fractions, ml_dtypes and pinned cases."""

from fractions import Fraction
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verif.golden.mx import ELEMENT_FORMATS, dot_pair, dot_product, mixes, mx_dot

NAN = 0x7FC00000
INFINITY = 0x7F800000
KINDS = {
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e4m3": ml_dtypes.float8_e4m3,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
PAIRS = [(a, b) for a, b in product(ELEMENT_FORMATS, repeat=2) if {a, b} != {"e4m3", "e4m3fn"}]


def value_of(code: int, name: str) -> float:
    """What a code means to ml_dtypes; the high bits of E2M1 do not count."""
    code &= 15 if name == "e2m1" else 255
    return float(np.array([code], np.uint8).view(KINDS[name])[0].astype(np.float32))


def scale_of(code: int, name: str) -> float | Fraction:
    """What a scale code means; the range of E8M0 needs no float."""
    if name == "e4m3fn":
        return value_of(code, name)
    return float("nan") if code == 255 else Fraction(2) ** (code - 127)


def rounded(exact: Fraction) -> int:
    """The FP32 code nearest to `exact`, ties to even, overflow to infinity."""
    if exact == 0:
        return 0
    sign, size = int(exact < 0) << 31, abs(exact)
    length = size.numerator.bit_length() - size.denominator.bit_length()
    leading = length if size >= Fraction(2) ** length else length - 1
    last = max(leading - 23, -149)
    whole = round(size / Fraction(2) ** last)  # Python rounds halves of fractions to even
    return sign | min(((last + 149) << 23) + whole, INFINITY)


def expected(a: list[int], b: list[int], sa: int, sb: int, fmt_a: str, fmt_b: str, scale_fmt: str = "e8m0") -> int:
    """The dot product by fractions; non-finite values by Python's floats, whose rules are IEEE's."""
    left, right = [value_of(x, fmt_a) for x in a], [value_of(x, fmt_b) for x in b]
    scales = [scale_of(s, scale_fmt) for s in (sa, sb)]
    if not all(np.isfinite([*left, *right, *(float(s) for s in scales)])):
        total = sum(x * y for x, y in zip(left, right, strict=True))
        for s in scales:
            total *= float(np.sign(float(s)))  # a sign, a zero or a NaN is all that counts here
        return NAN if np.isnan(total) else INFINITY | int(total < 0) << 31
    exact = sum((Fraction(x) * Fraction(y) for x, y in zip(left, right, strict=True)), Fraction(0))
    return rounded(exact * Fraction(scales[0]) * Fraction(scales[1]))


def one(a: list[int], b: list[int], sa: int = 127, sb: int = 127, fmt: str = "e5m2", scale_fmt: str = "e8m0") -> int:
    """dot_product of one row."""
    out = dot_product([a], [b], [sa], [sb], fmt, fmt, scale_fmt)
    return int(out[0])


def float_bits(value: float) -> int:
    return int(np.array([value], np.float32).view(np.uint32)[0])


def e5m2(*values: float) -> list[int]:
    codes = np.array(values, np.float32).astype(ml_dtypes.float8_e5m2)
    assert (codes.astype(np.float32) == np.array(values, np.float32)).all()
    return codes.view(np.uint8).tolist()


def test_66_bits_and_one_rounding() -> None:
    wide = e5m2(2.0**15, 2.0**3, 2.0**-16, 0.0)
    assert one(wide, wide) == float_bits(2.0**30 + 2.0**7)  # 2^30 + 2^6 + 2^-32: above the tie
    without = e5m2(2.0**15, 2.0**3, 0.0, 0.0)
    assert one(without, without) == float_bits(2.0**30)  # the tie, to even
    below = e5m2(2.0**15, 2.0**3, -(2.0**-16), 0.0)
    assert one(below, wide) == float_bits(2.0**30)
    # a sum of more than 64 bits: 6.125 * 2^30 + 2^8 + 2^-32, and 2^8 is half a last place
    wider = e5m2(57344.0, 57344.0, 2.0**4, 2.0**-16)
    assert one(wider, wider) == float_bits(6.125 * 2.0**30 + 2.0**9)
    wider[3] = 0
    assert one(wider, wider) == float_bits(6.125 * 2.0**30)


def test_signs_and_specials() -> None:
    zero, minus, inf, nan = e5m2(0.0, -0.0)[0], 0x80, 0x7C, 0x7E
    assert one([zero] * 4, [zero] * 4) == 0
    assert one([minus] * 4, [zero] * 4) == 0
    assert one(e5m2(3, -3, 0, 0), e5m2(2, 2, 0, 0)) == 0
    assert one([inf, 0, 0, 0], [minus, 0, 0, 0]) == NAN
    assert one([inf, inf, 0, 0], [0x3C, 0xBC, 0, 0]) == NAN
    assert one([inf, inf, 0, 0], [0x3C, 0x3C, 0, 0]) == INFINITY
    assert one([0xFC, 0, 0, 0], [0x3C, 0, 0, 0], 0, 0) == INFINITY | 1 << 31
    assert one([nan, 0, 0, 0], [0] * 4) == NAN
    assert one([0] * 4, [0] * 4, 255) == one([0] * 4, [0] * 4, 127, 255) == NAN
    assert one([0x7F, 0, 0, 0], [0] * 4, fmt="e4m3fn") == NAN
    assert one([0x78, 0, 0, 0], [0x38, 0, 0, 0], fmt="e4m3fn") == float_bits(256)
    assert one([0x78, 0, 0, 0], [0x38, 0, 0, 0], fmt="e4m3") == INFINITY


def test_scales_reach_both_ends() -> None:
    unit = e5m2(1, 0, 0, 0)
    assert one(unit, unit, 0, 105) == 1  # 2^-149
    assert one(unit, unit, 0, 104) == 0  # the tie with zero, to even
    assert one(e5m2(1.5, 0, 0, 0), unit, 0, 104) == 1
    assert one(e5m2(-1, 0, 0, 0), unit, 0, 0) == 1 << 31
    assert one(unit, unit, 254, 127) == float_bits(2.0**127)
    assert one(unit, unit, 254, 128) == INFINITY
    assert one(e5m2(-1, 0, 0, 0), unit, 254, 254) == INFINITY | 1 << 31


def test_scales_of_nvfp4() -> None:
    sixes = [0x7] * 4
    assert one(sixes, sixes, 0x7E, 0x7E, "e2m1", "e4m3fn") == float_bits(144 * 448.0 * 448.0)
    assert one(sixes, sixes, 0x81, 0x01, "e2m1", "e4m3fn") == float_bits(-144 * 2.0**-18)
    assert one(sixes, sixes, 0x7F, 0x38, "e2m1", "e4m3fn") == NAN
    assert one(sixes, sixes, 0x38, 0xFF, "e2m1", "e4m3fn") == NAN
    assert one(sixes, sixes, 0x80, 0x38, "e2m1", "e4m3fn") == 0
    assert one([0x7C, 0, 0, 0], [0x3C, 0, 0, 0], 0xB8, 0x38, "e5m2", "e4m3fn") == INFINITY | 1 << 31
    assert one([0x7C, 0, 0, 0], [0x3C, 0, 0, 0], 0x00, 0x38, "e5m2", "e4m3fn") == NAN


def test_addition_is_a_rounding_of_its_own() -> None:
    half = 2.0**-24
    a, b = [e5m2(1, 2.0**-12, 0, 0)], [e5m2(1, 2.0**-12, 0, 0)]
    assert mx_dot(a, b, [127], [127], [0], "e5m2", "e5m2")[0] == float_bits(1)
    # 1 + 2^-24 + 2^-24 would be above 1 with one rounding
    assert mx_dot(a, b, [127], [127], [float_bits(half)], "e5m2", "e5m2")[0] == float_bits(1)
    assert dot_pair([e5m2(3, 5)], [e5m2(2, -2)], [float_bits(4)], "e5m2", "e5m2")[0] == 0


@pytest.mark.parametrize(("fmt_a", "fmt_b"), PAIRS)
@pytest.mark.parametrize("scale_fmt", ["e8m0", "e4m3fn"])
def test_random_rows_equal_exact_fractions(fmt_a: str, fmt_b: str, scale_fmt: str) -> None:
    rng = np.random.default_rng([PAIRS.index((fmt_a, fmt_b)), len(scale_fmt)])
    n = 400
    a, b = rng.integers(0, 256, (2, n, 4), dtype=np.uint8)
    keep = rng.random((n, 4)) < 0.5  # products that nearly cancel
    if fmt_a == fmt_b:
        b[:, 1] = np.where(keep[:, 0], a[:, 0], b[:, 1])
        a[:, 1] = np.where(keep[:, 0], b[:, 0] ^ (0x8 if fmt_a == "e2m1" else 0x80), a[:, 1])
    sa = rng.integers(0, 256, n, dtype=np.uint8)
    sb = np.where(rng.random(n) < 0.5, np.clip(100 - sa.astype(int) + rng.integers(0, 60, n), 0, 255), 127)
    sb = sb.astype(np.uint8) if scale_fmt == "e8m0" else rng.integers(0, 256, n, dtype=np.uint8)
    got = dot_product(a, b, sa, sb, fmt_a, fmt_b, scale_fmt)
    for i in range(n):
        want = expected(a[i].tolist(), b[i].tolist(), int(sa[i]), int(sb[i]), fmt_a, fmt_b, scale_fmt)
        assert got[i] == want, (a[i], b[i], sa[i], sb[i], hex(got[i]), hex(want))


bytes4 = st.lists(st.integers(0, 255), min_size=4, max_size=4)


@settings(max_examples=400, deadline=None)
@given(bytes4, bytes4, st.integers(0, 255), st.integers(0, 255), st.sampled_from(PAIRS), st.booleans())
def test_any_row_equals_exact_fractions(
    a: list[int], b: list[int], sa: int, sb: int, pair: tuple[str, str], nvfp4: bool
) -> None:
    scale_fmt = "e4m3fn" if nvfp4 else "e8m0"
    got = int(dot_product([a], [b], [sa], [sb], *pair, scale_fmt)[0])
    assert got == expected(a, b, sa, sb, *pair, scale_fmt)


def test_what_does_not_mix() -> None:
    assert [p for p in product(ELEMENT_FORMATS, repeat=2) if not mixes(*p)] == [("e4m3fn", "e4m3"), ("e4m3", "e4m3fn")]
    with pytest.raises(ValueError, match="not mixed"):
        dot_product([[0]], [[0]], [127], [127], "e4m3", "e4m3fn")
    with pytest.raises(ValueError, match="an element is"):
        dot_product([[0]], [[0]], [127], [127], "bf16", "bf16")
    with pytest.raises(ValueError, match="a scale is"):
        dot_product([[0]], [[0]], [127], [127], "e5m2", "e5m2", "e5m2")
