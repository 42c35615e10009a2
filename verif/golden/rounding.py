"""Sums rounded to BF16 on their way to PSUM, in integers; written from docs/numerics.md."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["lane_bits", "row_words", "to_bf16"]

U32 = NDArray[np.uint32]
_NEAREST, _STOCHASTIC = 1, 2
_ALL = 0xFFFFFFFF


def row_words(seed: int, queue: int, sequence: int, elements: int) -> list[int]:
    """The hash after the seed, the ticket and each element from 0 on."""

    def take(h: int, word: int) -> int:
        h = (h + word) & _ALL
        h = h * 1025 & _ALL
        return h ^ h >> 6

    begin = take(seed, queue << 16 | sequence)
    return [take(begin, element) for element in range(elements)]


def lane_bits(words: list[int], lanes: int) -> NDArray[np.uint64]:
    """16 random bits of every lane and element, [lanes, elements]."""
    h = (np.arange(lanes, dtype=np.uint64)[:, None] + np.array(words, dtype=np.uint64)) % 2**32
    for _ in range(2):
        h = h * 1025 % 2**32
        h ^= h // 64
        h = h * 9 % 2**32
        h ^= h // 2048
        h = h * 32769 % 2**32
    return h // 2**16


def to_bf16(codes: U32, rounding: int, words: list[int]) -> U32:
    """FP32 codes [lanes, elements] as isa.Rounding says, still FP32; `words` of each element.

    Of the two BF16 about x the upper one is taken if the part of x that is cut, in units of 2^-16 of their distance, is
    more than what the random bits leave below 2^16, or at least one half, of which ties go to the even one.
    """
    if not rounding:
        return codes
    wide = codes.astype(np.uint64)
    sign, size = wide >> 31, wide % 2**31
    low, cut = size // 2**16, size % 2**16
    if rounding == _STOCHASTIC:
        up = cut + lane_bits(words, codes.shape[0]) >= 2**16
    else:
        assert rounding == _NEAREST
        up = (cut > 2**15) | ((cut == 2**15) & (low % 2 == 1))
    special = size >= 0x7F800000
    return (sign << 31 | np.where(special, low, low + up) << 16).astype(np.uint32)
