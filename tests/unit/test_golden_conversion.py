"""Golden conversions of all formats against ml_dtypes and NumPy: every code of up to 16 bits, dense FP32 codes."""

import ml_dtypes
import numpy as np
import pytest

from verif.golden.conversion import container, convert, from_fp32, to_fp32

FLOATS = {
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e4m3": ml_dtypes.float8_e4m3,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e8m0": ml_dtypes.float8_e8m0fnu,
}
BITS = {"bf16": 16, "fp16": 16, "e2m1": 4}
INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")


def dense() -> np.ndarray:
    """FP32 codes: random bits, numbers near 1, and numbers at and beside halves of 8-bit formats."""
    rng = np.random.default_rng(0)
    wild = rng.integers(0, 1 << 32, 100_000, dtype=np.uint32)
    near = (rng.choice([-1, 1], 100_000) * 2.0 ** rng.uniform(-30, 20, 100_000)).astype(np.float32).view(np.uint32)
    tails = np.array([0, 0x80000, 0x7FFFF, 0x80001, 0x40000, 0x3FFFF, 0x40001], np.uint32)
    return np.concatenate([wild, near, (near & np.uint32(0xFFF00000)) | rng.choice(tails, near.size)])


@pytest.mark.parametrize("name", FLOATS)
def test_to_fp32_is_ml_dtypes(name: str) -> None:
    codes = np.arange(1 << BITS.get(name, 8)).astype(container(name))
    want = codes.view(FLOATS[name]).astype(np.float32)
    got = to_fp32(codes, name)
    nan = np.isnan(want)
    assert np.array_equal(got[~nan], want[~nan].view(np.uint32))
    assert (got[nan] == 0x7FC00000).all()


@pytest.mark.parametrize("name", FLOATS)
def test_from_fp32_is_ml_dtypes(name: str) -> None:
    codes = dense()
    with np.errstate(all="ignore"):
        cast = codes.view(np.float32).astype(FLOATS[name])
    want = cast.view(container(name)) & ((1 << BITS.get(name, 8)) - 1)
    got = from_fp32(codes, name)
    nan = np.isnan(codes.view(np.float32)) if name == "e2m1" else np.isnan(cast.astype(np.float32))
    assert np.array_equal(got[~nan], want[~nan])
    if name == "e2m1":
        assert (got[nan] == 8).all(), "ml_dtypes gives a negative zero for a positive NaN"
    else:
        assert np.isnan(got[nan].view(FLOATS[name]).astype(np.float32)).all()


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_rounded_and_saturate(name: str) -> None:
    kind = np.iinfo(name)
    values = dense().view(np.float32)
    with np.errstate(all="ignore"):
        whole = np.clip(np.rint(values.astype(np.float64)), kind.min, kind.max)
    want = np.where(np.isnan(values), 0, whole).astype(np.int64).astype(name)
    assert np.array_equal(from_fp32(values.view(np.uint32), name).view(name), want)
    given = np.random.default_rng(1).integers(kind.min, kind.max, 50_000, endpoint=True, dtype=name)
    assert np.array_equal(to_fp32(given.view(container(name)), name).view(np.float32), given.astype(np.float32))


def test_tf32_keeps_ten_bits() -> None:
    codes = dense()
    got = from_fp32(codes, "tf32").astype(np.int64)
    finite = (codes & 0x7FFFFFFF) < 0x7F800000
    assert (got & 0x1FFF == 0).all()
    error = np.abs(got - codes.astype(np.int64))[finite]
    assert (error <= 0x1000).all()
    ties = finite & (codes & 0x1FFF == 0x1000)
    assert ties.any()
    assert (got[ties] & 0x2000 == 0).all()
    assert np.array_equal(to_fp32(got, "tf32")[finite], got[finite].astype(np.uint32))


@pytest.mark.parametrize(
    ("name", "largest"), [("fp16", 65504), ("e4m3fn", 448), ("e4m3", 240), ("e5m2", 57344), ("e2m1", 6)]
)
def test_saturation_stops_at_the_largest_number(name: str, largest: float) -> None:
    values = np.array([1e9, -1e9, np.inf, -np.inf], np.float32)
    got = to_fp32(from_fp32(values.view(np.uint32), name, saturate=True), name).view(np.float32)
    assert got.tolist() == [largest, -largest, largest, -largest]


def test_equal_formats_pass_and_others_go_by_fp32() -> None:
    nan = np.array([0x7F800001], np.uint32)
    assert convert(nan, "fp32", "fp32")[0] == 0x7F800001
    assert convert(np.array([0xFFFFFFF], np.uint32), "int32", "uint32")[0] == 0x10000000, "24 bits of it survive"
