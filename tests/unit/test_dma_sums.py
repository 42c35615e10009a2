"""verif.golden.dma.added against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from rtl.contract.descriptor import DmaAdd
from verif.golden.dma import added

SPECIALS = (0x0000, 0x8000, 0x7F80, 0xFF80, 0x7F81, 0xFFC1, 0x7FFF, 0x0001, 0x8001, 0x007F, 0x0080, 0x7F7F, 0xFF7F)


def sums(old: np.ndarray, new: np.ndarray, add: DmaAdd) -> np.ndarray:
    return added(old.view(np.uint8), new.view(np.uint8), add).view(old.dtype)


def rounded(exact: Fraction, digits: int) -> Fraction:
    """To nearest even, with as many significant bits as a format of 8 exponent bits has for it."""
    if not exact:
        return exact
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, -126) - digits + 1)
    return round(exact / unit) * unit


def reference(a: int, b: int, digits: int) -> int:
    """Bits of the sum of two codes, `digits` significant bits, by fractions."""
    fraction_bits = digits - 1
    top = 1 << fraction_bits
    infinity, quiet = 255 << fraction_bits, 255 << fraction_bits | top >> 1
    sign_bit = 256 << fraction_bits

    def value(code: int) -> Fraction:
        e, f = code >> fraction_bits & 255, code & top - 1
        significand = f + (top if e else 0)
        return (-1 if code & sign_bit else 1) * significand * Fraction(2) ** (max(e, 1) - 127 - fraction_bits)

    magnitudes = a & sign_bit - 1, b & sign_bit - 1
    if max(magnitudes) > infinity or (min(magnitudes) == infinity and a != b):
        return quiet
    if max(magnitudes) == infinity:
        return a if magnitudes[0] == infinity else b
    if not any(magnitudes):
        return a & b
    exact = rounded(value(a) + value(b), digits)
    if not exact:
        return 0
    size, sign = abs(exact), sign_bit if exact < 0 else 0
    if size >= Fraction(2) ** 128:
        return sign | infinity
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length(), -126)
    exponent -= Fraction(2) ** exponent > size and exponent > -126
    significand = int(size / Fraction(2) ** (exponent - fraction_bits))
    return sign | (significand if significand < top else (exponent + 127 << fraction_bits) + significand - top)


def test_all_pairs_of_exponents_of_bf16() -> None:
    """Corner fractions, and random ones, of each pair; both signs."""
    rng = np.random.default_rng(1)
    pairs = [(x, y) for x in range(256) for y in range(256)]
    for fractions in ((0, 0), (127, 127), (0, 127), tuple(rng.integers(0, 128, 2))):
        codes = np.array([(x << 7 | fractions[0], y << 7 | fractions[1]) for x, y in pairs], np.uint16)
        codes ^= (rng.integers(0, 2, codes.shape) << 15).astype(np.uint16)
        got = sums(codes[:, 0].copy(), codes[:, 1].copy(), DmaAdd.BF16)
        for (a, b), bits in zip(codes.tolist(), got.tolist(), strict=True):
            assert bits == reference(a, b, 8), f"{a:04x} + {b:04x} is {bits:04x}"


@pytest.mark.parametrize("seed", range(4))
def test_fp32(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1 << 32, 4000, np.uint32)
    b = np.where(rng.random(4000) < 0.5, rng.integers(0, 1 << 32, 4000, np.uint32), a ^ rng.integers(0, 1 << 25, 4000))
    b = (b ^ (rng.integers(0, 2, 4000) << 31)).astype(np.uint32)
    for x, y, bits in zip(a.tolist(), b.tolist(), sums(a, b, DmaAdd.FP32).tolist(), strict=True):
        assert bits == reference(x, y, 24), f"{x:08x} + {y:08x} is {bits:08x}"


def test_specials() -> None:
    for digits, add, kind, shift in ((8, DmaAdd.BF16, np.uint16, 0), (24, DmaAdd.FP32, np.uint32, 16)):
        codes = np.array([(x << shift, y << shift) for x in SPECIALS for y in SPECIALS], kind)
        got = sums(codes[:, 0].copy(), codes[:, 1].copy(), add)
        assert [reference(a, b, digits) for a, b in codes.tolist()] == got.tolist()


def test_int32_wraps() -> None:
    old, new = np.array([0xFFFFFFFF, 0x7FFFFFFF], np.uint32), np.array([1, 1], np.uint32)
    assert sums(old, new, DmaAdd.INT32).tolist() == [0, 0x80000000]
