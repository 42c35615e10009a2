"""The golden conversions against NumPy and ml_dtypes: all 16-bit sources, dense and special FP32."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from rtl.contract.formats import CANONICAL_NAN_FP32
from verif.golden.vector import canonical_nan, container, convert, tensor_copy

TYPES = {"fp32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16), "fp16": np.dtype(np.float16)}
PAIRS = [(a, b) for a, b in itertools.product(TYPES, TYPES) if a != b]


def sources(name: str) -> np.ndarray:
    """Every 16-bit code; for FP32, every upper half with all rounding tails, and random codes."""
    if name != "fp32":
        return np.arange(1 << 16, dtype=np.uint16)
    upper = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    tails = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x0FFF, 0x1000, 0x1001, 0x3000, 0x2FFF, 0x3001]
    random = np.random.default_rng(1).integers(0, 1 << 32, 1 << 20, dtype=np.uint32)
    return np.concatenate([upper + np.uint32(t) for t in tails] + [random])


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_convert_is_the_cast_of_outside_libraries(src: str, dst: str) -> None:
    codes = sources(src)
    with np.errstate(all="ignore"):
        expected = codes.view(TYPES[src]).astype(np.float32).astype(TYPES[dst])
    is_nan = np.isnan(expected.astype(np.float32))
    wanted = np.where(is_nan, canonical_nan(dst), expected.view(container(dst)))
    got = convert(codes, src, dst)
    assert got.dtype == container(dst)
    wrong = np.flatnonzero(got != wanted)
    assert wrong.size == 0, f"{codes[wrong[0]]:#x} gives {got[wrong[0]]:#x}, not {wanted[wrong[0]]:#x}"


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_saturation_holds_at_the_largest_finite_number(src: str, dst: str) -> None:
    codes = sources(src)
    plain = convert(codes, src, dst)
    held = convert(codes, src, dst, saturate=True)
    value = plain.view(TYPES[dst]).astype(np.float32)
    largest = np.float32(ml_dtypes.finfo(TYPES[dst]).max)
    with np.errstate(all="ignore"):
        expected = np.where(np.isinf(value), np.copysign(largest, value), value).astype(TYPES[dst])
    nan = np.isnan(value)
    assert np.isinf(value).any()
    assert np.array_equal(held[~nan], expected.view(container(dst))[~nan])
    assert (held[nan] == canonical_nan(dst)).all()


@pytest.mark.parametrize("name", TYPES)
def test_equal_formats_keep_every_bit(name: str) -> None:
    codes = sources(name)
    assert np.array_equal(convert(codes, name, name), codes)
    assert np.array_equal(convert(codes, name, name, saturate=True), codes)


def test_canonical_nans() -> None:
    assert canonical_nan("fp32") == CANONICAL_NAN_FP32
    assert canonical_nan("bf16") == 0x7FC0
    assert canonical_nan("fp16") == 0x7E00


def test_tensor_copy_keeps_the_shape() -> None:
    block = np.arange(12, dtype=np.uint16).reshape(3, 4)
    assert tensor_copy(block, "bf16", "fp32").tolist() == (block.astype(np.uint32) << 16).tolist()


def test_unknown_formats_are_named() -> None:
    with pytest.raises(ValueError, match="not 'int7'"):
        convert([1], "int7", "fp32")
