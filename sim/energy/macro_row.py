"""A row of a RAM macro that a run reaches."""

from dataclasses import dataclass

__all__ = ["RowOf"]


@dataclass(frozen=True, slots=True)
class RowOf:
    """Bits of the row, bytes of its macro."""

    bits: int
    macro_bytes: int
