"""firmware.numbers against ml_dtypes and NumPy: every code of the small formats, values around every boundary."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from firmware.numbers import bits_dtype, decode, element_bytes, encode

SMALL: dict[str, Any] = {
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e4m3": ml_dtypes.float8_e4m3,
    "e5m2": ml_dtypes.float8_e5m2,
}
FLOATS: dict[str, Any] = SMALL | {"bf16": ml_dtypes.bfloat16, "fp16": np.float16}
INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")


@pytest.mark.parametrize("dtype", SMALL)
def test_every_code_of_small_floats(dtype: str):
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(SMALL[dtype]).astype(np.float32)
    found = decode(codes, dtype)
    assert np.array_equal(found, values, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(values))
    finite = ~np.isnan(values)
    assert np.array_equal(encode(values, dtype)[finite], codes[finite])


@pytest.mark.parametrize("dtype", FLOATS)
def test_encode_rounds_like_ml_dtypes(dtype: str):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32)
    middle = rng.integers(0x38000000, 0x48000000, 200_000).astype(np.uint32) & np.uint32(0xFFFFF000)
    x = np.concatenate((bits, middle, middle | np.uint32(1 << 31))).view(np.float32)
    with np.errstate(all="ignore"):
        truth = x.astype(FLOATS[dtype])
    codes = encode(x, dtype)
    nan = np.isnan(truth.astype(np.float32))
    assert np.array_equal(codes[~nan], truth.view(codes.dtype)[~nan])
    assert np.isnan(decode(codes, dtype)[nan]).all()


def test_tf32_keeps_ten_bits_of_the_fraction():
    x = np.array([1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, -1e-40, np.inf], np.float32)
    assert decode(encode(x, "tf32"), "tf32")[:3].tolist() == [1 + 2**-10, 1, 1 + 2**-9]
    assert encode(np.array([np.nan]), "tf32")[0] == 0x7FC00000


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_pass_as_they_are(dtype: str):
    info = np.iinfo(dtype)
    whole = np.array([info.min, 0, 1, info.max])
    codes = encode(whole, dtype)
    assert codes.dtype == bits_dtype(dtype) and codes.itemsize == element_bytes(dtype)
    assert decode(codes, dtype).tolist() == whole.tolist()
