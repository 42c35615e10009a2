"""A top with one more input that chooses the planted fault of what is inside."""

from amaranth.hdl import Value
from amaranth.lib import wiring

from rtl.base.planted import Planted

__all__ = ["PLANT_BITS", "PlantTop"]

PLANT_BITS = 16


class PlantTop(Planted):
    """The unit, all its ports, and the input `plant`: n for fault `names[n - 1]`, 0 for none.

    `names`, sorted, are known when it has been elaborated.
    """

    PORT = "plant"

    def __init__(self, unit: wiring.Component):
        super().__init__(unit, ())

    def fault_bits(self) -> int:
        """Width of the input."""
        return PLANT_BITS

    def fault_chosen(self, name: str) -> Value:
        """Whether the input plants a fault."""
        return self.plant == self.names.index(name) + 1
