"""Kinds of data: what numbers a unit is given while its toggles are counted."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from firmware.numbers import encode
from rtl.contract.formats import FORMATS
from sim.energy.simulation import STREAMS

__all__ = ["KINDS", "TYPICAL", "Source", "constant", "packed"]

Words = NDArray[np.uint64]
KINDS = ("zeros", "normal", "bits")
"""zeros: normal numbers, each of which is 0 with an even chance. normal: mean 0, variance 1, each independent of all
others. bits: every bit is a coin, but for infinities and NaN, which are 0."""
TYPICAL = "normal"


def packed(codes: Sequence[int] | NDArray[np.integer], bits: int) -> Words:
    """Codes, one a stream, as [bits, words]."""
    wide = np.asarray(codes, np.uint64)
    parts = wide[None, :] >> np.arange(bits, dtype=np.uint64)[:, None] & np.uint64(1)
    return np.ascontiguousarray(np.packbits(parts.astype(np.uint8), axis=1, bitorder="little")).view("<u8")


def constant(value: int, bits: int) -> Words:
    """The same in every stream, for any number of words: [bits, 1]."""
    return np.array([[~np.uint64(0) if value >> n & 1 else np.uint64(0)] for n in range(bits)], np.uint64)


class Source:
    """Numbers of one kind for all streams of a simulation; the same for the same `name`, whatever else is measured."""

    def __init__(self, kind: str, name: str, words: int = 1):
        self.kind = kind
        self.words = words
        self.streams = words * STREAMS
        self.rng = np.random.default_rng(int.from_bytes(hashlib.sha256(f"{kind} {name}".encode()).digest()[:8], "big"))

    def codes(self, fmt: str, spread: float = 1.0) -> NDArray[np.uint64]:
        """A code a stream. `spread`: standard deviation, of kinds that have one."""
        about = FORMATS[fmt]
        if self.kind == "bits" or about.integer:
            codes = self.rng.integers(0, 1 << about.bits, self.streams, dtype=np.uint64)
            return np.where(_finite(codes, fmt), codes, np.uint64(0))
        numbers = self.rng.normal(0.0, spread, self.streams).astype(np.float32)
        if self.kind == "zeros":
            numbers[self.rng.random(self.streams) < 0.5] = 0
        return encode(numbers, fmt).astype(np.uint64)

    def numbers(self, fmt: str, spread: float = 1.0) -> Words:
        """The same as [bits, words]."""
        return packed(self.codes(fmt, spread), FORMATS[fmt].bits)

    def word(self, fmt: str, bits: int = 64) -> Words:
        """As many neighbours as `bits` hold."""
        return np.concatenate([self.numbers(fmt) for _ in range(bits // FORMATS[fmt].bits)])

    def below(self, limit: int, bits: int, first: int = 0) -> Words:
        """Whole numbers from `first` on, below `limit`."""
        return packed(self.rng.integers(first, limit, self.streams, dtype=np.uint64), bits)


def _finite(codes: NDArray[np.uint64], fmt: str) -> NDArray[np.bool_]:
    about = FORMATS[fmt]
    if about.integer or not about.nans:
        return np.ones(codes.shape, np.bool_)
    if not about.infinities:
        return codes & np.uint64(0x7F) != 0x7F
    field = (codes >> np.uint64(about.bits - 1 - about.exponent)) & np.uint64((1 << about.exponent) - 1)
    return field != (1 << about.exponent) - 1
