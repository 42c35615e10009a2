"""Arithmetic of the codes' fields, used while a design is elaborated: it ends up as masks and tables."""

from collections.abc import Callable, Sequence
from functools import cache

from rtl.contract.link import (
    CRC_AT,
    CRC_BYTES,
    CRC_FIRST_ROOT,
    CRC_ORDER,
    CRC_POLYNOMIAL,
    FEC_AT,
    FEC_POLYNOMIAL,
)

__all__ = [
    "CRC_FIELD",
    "FEC_FIELD",
    "ORDER",
    "Field",
    "byte_columns",
    "crc_coefficient",
    "crc_exponent",
    "power_of_x",
    "rows_of",
]

ORDER = 255
"""Non-zero elements; alpha = 2 runs through all of them."""


class Field:
    """GF(2^8) modulo a primitive polynomial; bit k of a byte is the coefficient of x^k."""

    def __init__(self, polynomial: int):
        self.exp = [1]
        while len(self.exp) < ORDER:
            twice = self.exp[-1] << 1
            self.exp.append(twice ^ polynomial if twice > 255 else twice)
        self.log = [0] * 256  # of 0: 0, which means nothing
        for n, value in enumerate(self.exp):
            self.log[value] = n

    def power(self, n: int) -> int:
        """alpha^n, for any n."""
        return self.exp[n % ORDER]

    def mul(self, a: int, b: int) -> int:
        """The product."""
        return self.power(self.log[a] + self.log[b]) if a and b else 0


CRC_FIELD = Field(CRC_POLYNOMIAL)
FEC_FIELD = Field(FEC_POLYNOMIAL)


def rows_of(outputs: int, columns: Sequence[int]) -> list[int]:
    """Masks of a linear map from its columns: `columns[k]` is what input bit k alone gives."""
    return [sum((column >> n & 1) << k for k, column in enumerate(columns)) for n in range(outputs)]


def crc_coefficient(place: int, order: str = CRC_ORDER) -> int:
    """The power of x whose coefficient is byte `place` of the CRC, which stands in this order."""
    return CRC_BYTES - 1 - place if order == "high_first" else place


def crc_exponent(byte: int, order: str = CRC_ORDER) -> int:
    """The power of x that byte `byte` of a flit has in the codeword of the CRC."""
    return crc_coefficient(byte - CRC_AT, order) if byte >= CRC_AT else FEC_AT - 1 - byte


@cache
def _powers() -> tuple[tuple[int, ...], ...]:
    """x^n mod g for n from 0 to 254, each as its coefficients from x^0 on; x^255 is 1."""
    mul = CRC_FIELD.mul
    g = [1]
    for i in range(CRC_FIRST_ROOT, CRC_FIRST_ROOT + CRC_BYTES):
        root = CRC_FIELD.power(i)
        g = [(g[k - 1] if k else 0) ^ (mul(root, g[k]) if k < len(g) else 0) for k in range(len(g) + 1)]
    found = [(1,) + (0,) * (CRC_BYTES - 1)]
    while len(found) < ORDER:
        last = found[-1]
        found.append(tuple((last[k - 1] if k else 0) ^ mul(last[-1], g[k]) for k in range(CRC_BYTES)))
    return tuple(found)


def power_of_x(n: int, scale: int = 1) -> list[int]:
    """scale * x^n mod g, its coefficients from x^0 on; n may be negative."""
    return [CRC_FIELD.mul(scale, c) for c in _powers()[n % ORDER]]


def byte_columns(image: Callable[[int], int]) -> list[int]:
    """The 8 columns of a byte: what each of its bits gives."""
    return [image(1 << bit) for bit in range(8)]
