"""RAM macros: what stays a memory, and of which shape."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["MACRO_BITS", "Macro", "macro_of"]

MACRO_BITS = 4096
"""A memory of the hardware language with more bits, and a write port, is a macro; others are registers and gates."""


@dataclass(frozen=True, slots=True, order=True)
class Macro:
    """`depth` rows of `width_bits` with ports for reading and writing."""

    depth: int
    width_bits: int
    reads: int = 1
    writes: int = 1

    @property
    def bits(self) -> int:
        """Of its contents."""
        return self.depth * self.width_bits

    def __str__(self) -> str:
        return f"{self.depth} x {self.width_bits}, {self.reads}r{self.writes}w"


def macro_of(cell: str, parameters: Mapping[str, int]) -> tuple[Macro, int]:
    """The macro of a plexus_ram or plexus_lookup and how many it takes: each reader of a lookup has a copy."""
    macro = Macro(parameters["DEPTH"], parameters["WIDTH"])
    return macro, parameters["PORTS"] if cell == "plexus_lookup" else 1
