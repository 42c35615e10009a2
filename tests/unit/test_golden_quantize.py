"""Golden MX quantisation against exact fractions, the casts of ml_dtypes, and pinned blocks."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verif.golden.quantize import RULES, quantize_mx

EMAX = {"e4m3fn": 8, "e5m2": 15, "e2m1": 2}
KINDS = {"e4m3fn": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn}
SOURCES = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16}
LARGEST = {"e4m3fn": 0x7E, "e5m2": 0x7B, "e2m1": 0x7}
SIGN = {"e4m3fn": 0x80, "e5m2": 0x80, "e2m1": 0x8}


def floor_log2(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if value >= Fraction(2) ** exponent else exponent - 1


def by_fractions(codes: list[int], fmt: str, rule: str, src: str) -> tuple[list[int], int]:
    """A block by the words of the rule: every number of the format is tried."""
    with np.errstate(invalid="ignore"):
        values = np.array(codes, np.uint16).view(SOURCES[src]).astype(np.float64)
    if not np.isfinite(values).all():
        return [0] * len(codes), 0xFF
    exact = [Fraction(v) for v in values]
    most = max(abs(v) for v in exact)
    exponent = -127
    if most:
        exponent = max(-127, min(127, floor_log2(most) - (EMAX[fmt] - (rule == "emax-1"))))
    table = np.arange(LARGEST[fmt] + 1, dtype=np.uint8).view(KINDS[fmt]).astype(np.float64)
    numbers = [Fraction(v) for v in table]
    elements = []
    for code, value in zip(codes, exact):
        quotient = abs(value) / Fraction(2) ** exponent
        # beyond the largest number it is still the nearest; a tie goes to the even code
        nearest = min(range(len(numbers)), key=lambda n: (abs(numbers[n] - quotient), n & 1))
        elements.append(nearest | (SIGN[fmt] if code >> 15 else 0))
    return elements, exponent + 127


@st.composite
def blocks(draw: st.DrawFn) -> list[int]:
    """32 codes: any, or near one magnitude, or few mantissas, so that ties and limits are met."""
    style = draw(st.sampled_from(("any", "near", "zeros")))
    if style == "any":
        return draw(st.lists(st.integers(0, 0xFFFF), min_size=32, max_size=32))
    base = draw(st.integers(0, 0x7FFF))
    spread = draw(st.sampled_from((1 << 7, 1 << 10, 1 << 12)))
    sizes = draw(st.lists(st.integers(0, spread), min_size=32, max_size=32))
    signs = draw(st.integers(0, (1 << 32) - 1))
    low = 0 if style == "near" else 1
    return [max(0, base - size) * (low ^ 1 | size & 1) | (signs >> i & 1) << 15 for i, size in enumerate(sizes)]


@given(blocks(), st.sampled_from(sorted(EMAX)), st.sampled_from(RULES), st.sampled_from(sorted(SOURCES)))
@settings(max_examples=300, deadline=None)
def test_a_block_is_what_the_rule_says(codes: list[int], fmt: str, rule: str, src: str) -> None:
    elements, scale = quantize_mx(np.array([codes], np.uint16), fmt, rule, src)
    assert (elements[0].tolist(), int(scale[0])) == by_fractions(codes, fmt, rule, src)


@pytest.mark.parametrize("src", sorted(SOURCES))
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fmt", sorted(EMAX))
def test_elements_are_the_casts_of_ml_dtypes(fmt: str, rule: str, src: str) -> None:
    """Blocks of one binade's largest number and 31 others below it; the quotient is exact in double."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 1 << 16, (20_000, 32)).astype(np.uint16)
    limit = rng.integers(1, 0x7C00 if src == "fp16" else 0x7F80, (20_000, 1))
    codes = np.where(codes & 0x7FFF > limit, codes & 0x8000 | limit, codes).astype(np.uint16)
    elements, scale = quantize_mx(codes, fmt, rule, src)
    values = codes.view(SOURCES[src]).astype(np.float64)
    assert np.isfinite(values).all()
    most = np.abs(values).max(axis=1)
    with np.errstate(divide="ignore"):
        want = np.floor(np.log2(most)) - EMAX[fmt] + (rule == "emax-1") + 127
    assert np.array_equal(scale, np.where(most == 0, 0, np.clip(want, 0, 254)))
    quotient = values / 2.0 ** (scale.astype(np.float64)[:, None] - 127)
    top = float(np.array(LARGEST[fmt], np.uint8).view(KINDS[fmt]))
    cast = np.clip(quotient, -top, top).astype(KINDS[fmt]).view(np.uint8)
    assert np.array_equal(elements, cast)


def test_pinned_blocks() -> None:
    def block(*values: float) -> np.ndarray:
        padded = np.zeros((1, 32), np.float32)
        padded[0, : len(values)] = values
        return padded.astype(ml_dtypes.bfloat16).view(np.uint16)

    elements, scale = quantize_mx(block(1.0, -0.5, 1.96875), "e4m3fn")
    assert scale[0] == 119 and elements[0, :3].tolist() == [0x78, 0xF0, 0x7E], "504 saturates at 448"
    elements, scale = quantize_mx(block(1.0, -0.5, 1.96875), "e4m3fn", "emax-1")
    assert scale[0] == 120 and elements[0, :3].tolist() == [0x70, 0xE8, 0x78], "252 rounds to 256"
    elements, scale = quantize_mx(block(7.0, -7.0, 0.5, 0.25, 0.75), "e2m1")
    assert scale[0] == 127 and elements[0, :5].tolist() == [7, 15, 1, 0, 2], "7 saturates, ties go to even"


@pytest.mark.parametrize("src", sorted(SOURCES))
@pytest.mark.parametrize("fmt", sorted(EMAX))
def test_specials_and_zeros(fmt: str, src: str) -> None:
    top = 0x7C00 if src == "fp16" else 0x7F80
    for code in (top, top | 0x8000, top + 1, 0xFFFF):
        codes = np.full((1, 32), 0x3C01, np.uint16)
        codes[0, 17] = code
        elements, scale = quantize_mx(codes, fmt, src=src)
        assert scale[0] == 0xFF and not elements.any()
    codes = np.zeros((1, 32), np.uint16)
    codes[0, ::2] = 0x8000
    elements, scale = quantize_mx(codes, fmt, src=src)
    assert scale[0] == 0 and elements[0].tolist() == [SIGN[fmt], 0] * 16


def test_the_clamped_scale_is_the_one_divided_by() -> None:
    """The largest number is 2^-126: its E5M2 scale would be 2^-141, code -14."""
    codes = np.full((1, 32), 0x0080, np.uint16)
    elements, scale = quantize_mx(codes, "e5m2")
    assert scale[0] == 0
    assert (elements.view(ml_dtypes.float8_e5m2).astype(np.float32) == 2.0).all()


def test_wrong_arguments_get_a_sentence() -> None:
    for wrong in (("e4m3", "ocp", "bf16"), ("e2m1", "max", "bf16"), ("e2m1", "ocp", "fp32")):
        with pytest.raises(ValueError, match="quantize_mx knows"):
            quantize_mx(np.zeros((1, 32), np.uint16), *wrong)
    with pytest.raises(ValueError, match="rows of 32"):
        quantize_mx(np.zeros((1, 31), np.uint16), "e2m1")
