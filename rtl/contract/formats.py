"""Number formats by name: fields, biases, special values.

Sources: IEEE 754-2019 table 3.5 (fp32, fp16); OCP OFP8 1.0 section 5 (e4m3fn, e5m2); OCP MX 1.0
sections 5.2 to 5.4 (e2m1, e8m0). `code` is what an instruction's dtype field holds.
"""

from dataclasses import dataclass

__all__ = ["FORMATS", "MX_BLOCK", "MX_EMAX", "MX_SCALE_NAN", "Format", "by_code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A number format. `bits` is its size in memory; tf32 keeps 19 significant bits in 32."""

    name: str
    code: int
    bits: int
    exponent: int = 0
    mantissa: int = 0
    bias: int = 0
    infinities: bool = False
    nans: bool = False
    integer: bool = False
    signed: bool = True

    @property
    def bytes(self) -> int:
        """Bytes an element takes in memory; sub-byte formats are packed and say 0."""
        return self.bits // 8


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format(name="fp32", code=0, bits=32, exponent=8, mantissa=23, bias=127, infinities=True, nans=True),
        Format(name="bf16", code=1, bits=16, exponent=8, mantissa=7, bias=127, infinities=True, nans=True),
        Format(name="fp16", code=2, bits=16, exponent=5, mantissa=10, bias=15, infinities=True, nans=True),
        Format(name="tf32", code=3, bits=32, exponent=8, mantissa=10, bias=127, infinities=True, nans=True),
        Format(name="e4m3fn", code=4, bits=8, exponent=4, mantissa=3, bias=7, nans=True),
        Format(name="e4m3", code=5, bits=8, exponent=4, mantissa=3, bias=7, infinities=True, nans=True),
        Format(name="e5m2", code=6, bits=8, exponent=5, mantissa=2, bias=15, infinities=True, nans=True),
        Format(name="e2m1", code=7, bits=4, exponent=2, mantissa=1, bias=1),
        Format(name="e8m0", code=8, bits=8, exponent=8, bias=127, nans=True, signed=False),
        Format(name="int8", code=9, bits=8, integer=True),
        Format(name="int16", code=10, bits=16, integer=True),
        Format(name="int32", code=11, bits=32, integer=True),
        Format(name="uint8", code=12, bits=8, integer=True, signed=False),
        Format(name="uint16", code=13, bits=16, integer=True, signed=False),
        Format(name="uint32", code=14, bits=32, integer=True, signed=False),
    )
}

CANONICAL_NAN_FP32 = 0x7FC00000
INFINITY_FP32 = 0x7F800000

MX_BLOCK = 32
"""Elements that share an E8M0 scale (OCP MX 1.0, table 1)."""

MX_EMAX = {"e4m3fn": 8, "e5m2": 15, "e2m1": 2}
"""Exponent of the largest number of the element formats."""

MX_SCALE_NAN = 0xFF
"""The scale of a block that holds a NaN or an infinity."""


def by_code(code: int) -> Format:
    """The format with this dtype code. ValueError if none has it."""
    for fmt in FORMATS.values():
        if fmt.code == code:
            return fmt
    raise ValueError(f"dtype code {code} names no format; codes are 0 to {len(FORMATS) - 1}")
