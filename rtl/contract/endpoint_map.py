"""Which endpoint number packets use for a core: its place in the address map has 18 bits, a packet 12."""

from dataclasses import dataclass

__all__ = ["EndpointMap", "PLACE"]

PLACE = ("rack", "server", "chip", "core")
"""Parts of a place, most significant first."""


@dataclass(frozen=True, slots=True)
class EndpointMap:
    """`bits`: how many bits of rack, server, chip and core an endpoint number has, the core's lowest.

    Places are (rack, server, chip, core) as of memmap.core_place. Two that fit never have the same number.
    """

    bits: tuple[int, int, int, int]

    def has(self, place: tuple[int, int, int, int]) -> bool:
        """Whether a core at this place can send packets and get them."""
        return all(0 <= value < 1 << width for value, width in zip(place, self.bits, strict=True))

    def encode(self, place: tuple[int, int, int, int]) -> int:
        """The endpoint number of a core. Errors: ValueError, one sentence, if a part of the place does not fit."""
        number = 0
        for name, value, width in zip(PLACE, place, self.bits, strict=True):
            if not 0 <= value < 1 << width:
                raise ValueError(
                    f"core {tuple(place)} has no endpoint number: {name} must be from 0 to {(1 << width) - 1} "
                    f"(fabric.endpoint_bits is {self}), not {value}"
                )
            number = number << width | value
        return number

    def decode(self, number: int) -> tuple[int, int, int, int]:
        """The place of an endpoint number. Errors: ValueError, one sentence, if it is that of no place."""
        if not 0 <= number < self.count:
            raise ValueError(
                f"an endpoint number must be from 0 to {self.count - 1} (fabric.endpoint_bits is {self}), not {number}"
            )
        _, server, chip, core = self.bits
        return (
            number >> server + chip + core,
            number >> chip + core & (1 << server) - 1,
            number >> core & (1 << chip) - 1,
            number & (1 << core) - 1,
        )

    @property
    def count(self) -> int:
        """Endpoint numbers that are those of a place: from 0 up to here."""
        return 1 << sum(self.bits)

    def __str__(self) -> str:
        return ":".join(map(str, self.bits))
