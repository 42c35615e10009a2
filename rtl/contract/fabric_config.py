"""Section `fabric` of a configuration: how a core is named among others."""

from dataclasses import dataclass

from rtl.contract.config_fields import check, need, numbers
from rtl.contract.endpoint_map import PLACE, EndpointMap
from rtl.contract.link import ENDPOINT_BITS
from rtl.contract.memmap import ADDRESS

__all__ = ["ENDPOINT_MAPS", "FabricConfig"]

_PARTS = {field.name: field.width for field in ADDRESS if field.name in PLACE}
ENDPOINT_MAPS: dict[str, tuple[int, int, int, int]] = {
    "plain": (0, 4, 4, 4),  # the low bits of a place
    "gen1": (1, 2, 4, 3),  # 2 racks of 4 servers of 16 chips of 8 cores
    "gen2": (1, 5, 2, 3),  # 2 racks of up to 32 servers of 4 chips of 8 cores
}
"""Named values of `fabric.endpoint_bits`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricConfig:
    """What packets between cores call a core; hardware of a core without a link does not depend on it."""

    endpoint_bits: tuple[int, int, int, int] = numbers(
        "bits of rack, server, chip and core in the endpoint number of a core",
        len(PLACE),
        0,
        max(_PARTS.values()),
        ENDPOINT_MAPS["plain"],
        also=f"at most {', '.join(f'{width} of {name}' for name, width in reversed(_PARTS.items()))}, "
        f"{ENDPOINT_BITS} together",
        named=ENDPOINT_MAPS,
    )

    def __post_init__(self) -> None:
        check("fabric", self)
        shown = self.endpoint_map
        for name, bits in zip(PLACE, self.endpoint_bits, strict=True):
            need(
                bits <= _PARTS[name],
                f"fabric.endpoint_bits must have at most the {_PARTS[name]} bits of {name} in an address, "
                f"not {bits} ({shown})",
            )
        need(
            sum(self.endpoint_bits) <= ENDPOINT_BITS,
            f"fabric.endpoint_bits must have at most {ENDPOINT_BITS} bits together, not {sum(self.endpoint_bits)} "
            f"({shown})",
        )

    @property
    def endpoint_map(self) -> EndpointMap:
        """The numbers of places, and places of numbers."""
        return EndpointMap(self.endpoint_bits)
