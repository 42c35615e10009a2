"""Named bit fields: one table describes a word, and packing, layout and documentation derive from it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["Field", "Word"]


@dataclass(frozen=True, slots=True)
class Field:
    """A bit field of a word. A signed field is stored in two's complement."""

    name: str
    width: int
    doc: str = ""
    signed: bool = False

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value that fits."""
        if self.signed:
            return -(1 << (self.width - 1)), (1 << (self.width - 1)) - 1
        return 0, (1 << self.width) - 1


class Word:
    """An ordered list of fields, least significant first, padded to `width` bits with zeros."""

    def __init__(self, name: str, width: int, fields: tuple[Field, ...]):
        self.name = name
        self.width = width
        self.fields = fields
        used = sum(f.width for f in fields)
        if used > width:
            raise ValueError(f"{name} has {used} bits of fields, more than its {width} bits")
        names = [f.name for f in fields]
        if len(set(names)) != len(names):
            raise ValueError(f"{name} names a field twice")

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    @property
    def bytes(self) -> int:
        """Size of the word in memory, in bytes."""
        return (self.width + 7) // 8

    def offset(self, name: str) -> int:
        """Bit position of the field `name`. KeyError if there is none."""
        at = 0
        for field in self.fields:
            if field.name == name:
                return at
            at += field.width
        raise KeyError(f"{self.name} has no field {name}")

    def pack(self, values: Mapping[str, int] | None = None, /, **more: int) -> int:
        """Fields to one integer; fields not named are 0. ValueError names what does not fit."""
        given = {**(values or {}), **more}
        word = at = 0
        for field in self.fields:
            value = int(given.pop(field.name, 0))
            low, high = field.bounds
            if not low <= value <= high:
                raise ValueError(
                    f"{self.name}.{field.name} = {value} does not fit in {field.width} bits ({low} to {high})"
                )
            word |= (value & ((1 << field.width) - 1)) << at
            at += field.width
        if given:
            raise ValueError(f"{self.name} has no field {', '.join(sorted(given))}")
        return word

    def unpack(self, word: int) -> dict[str, int]:
        """One integer to its fields. ValueError if it is wider than the word."""
        if not 0 <= word < 1 << self.width:
            raise ValueError(f"{self.name} has {self.width} bits, {word:#x} does not fit")
        values: dict[str, int] = {}
        for field in self.fields:
            value = word & ((1 << field.width) - 1)
            if field.signed and value >> (field.width - 1):
                value -= 1 << field.width
            values[field.name] = value
            word >>= field.width
        return values
