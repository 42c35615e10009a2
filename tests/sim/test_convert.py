"""Conversions: every code of up to 16 bits and dense FP32 codes through the unit, to every format."""

import numpy as np
import pytest

from rtl.contract.config import named
from rtl.contract.formats import FORMATS
from sim.evaluate import evaluate
from verif.golden.conversion import container, convert

pytestmark = pytest.mark.sim


def fp32_near_boundaries() -> np.ndarray:
    """FP32 codes: random ones, and ones whose low bits are at or beside a half of some place."""
    rng = np.random.default_rng(4)
    wild = rng.integers(0, 1 << 32, 100_000, dtype=np.uint32)
    near = (2.0 ** rng.uniform(-30, 36, 100_000)).astype(np.float32).view(np.uint32) | (wild & np.uint32(1 << 31))
    places = rng.integers(1, 24, near.size).astype(np.uint32)
    half = np.uint32(1) << (places - np.uint32(1))
    low = (half << np.uint32(1)) - np.uint32(1)
    return np.concatenate([wild, near, (near & ~low) + half + rng.integers(-1, 2, near.size).astype(np.uint32)])


@pytest.mark.parametrize("src", FORMATS)
def test_codes_of_all_formats(src: str) -> None:
    """Every code of up to 16 bits and dense FP32 codes, to every format, plain and saturating."""
    bits = FORMATS[src].bits
    codes = np.arange(1 << bits) if bits <= 16 else fp32_near_boundaries()
    x = codes.astype(container(src))
    for dst in FORMATS:
        for saturate in (0, 1):
            given = {"x": x, "src": np.array(src), "dst": np.array(dst), "saturate": np.array([saturate], np.uint8)}
            got = evaluate("convert", given, named("tiny"))["out"]
            assert np.array_equal(got, convert(x, src, dst, bool(saturate))), (dst, saturate)
