"""A decoded vector instruction."""

from dataclasses import dataclass

__all__ = ["VectorInstruction"]


@dataclass(frozen=True, slots=True)
class VectorInstruction:
    """`form` tells what the field of vs1 is: "v" a vector, "x" a register x, "i" an immediate, "" part of the name.

    `masked`: vm is 0. Of loads and stores `eew` is the width in bits that the word names, `fields` NFIELDS, vd may be
    vs3, and vs1 names the x with the address.
    """

    name: str
    form: str
    vd: int
    vs1: int
    vs2: int
    masked: bool
    eew: int = 0
    fields: int = 1

    @property
    def signed_immediate(self) -> int:
        """The five bits of vs1."""
        return (self.vs1 ^ 16) - 16
