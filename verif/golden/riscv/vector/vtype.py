"""What the register vtype says. Source: RVV 1.0, sections 3.4 and 6.1 (ELEN is 32)."""

from dataclasses import dataclass
from functools import cache

__all__ = ["ELEN", "VILL", "VType"]

ELEN = 32
"""Bits of the largest element."""

VILL = 1 << 31
"""vtype of a configuration that does not exist."""


@dataclass(frozen=True, slots=True)
class VType:
    """SEW in bits and log2 of LMUL, -3 to 3. What it says of tails and inactive elements changes nothing here."""

    sew: int
    lmul: int

    @staticmethod
    @cache
    def of(bits: int) -> "VType | None":
        """None if vill is to be set: a reserved bit, SEW of 64 and more, LMUL reserved or smaller than SEW / ELEN."""
        sew, lmul = 8 << (bits >> 3 & 7), (bits & 7 ^ 4) - 4
        if bits >> 8 or sew > ELEN or lmul == -4 or (lmul < 0 and sew > ELEN >> -lmul):
            return None
        return VType(sew, lmul)

    def vlmax(self, vlen: int) -> int:
        """Elements of a register group."""
        return (vlen << self.lmul if self.lmul >= 0 else vlen >> -self.lmul) // self.sew
