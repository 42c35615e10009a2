"""A RAM that many read at once, as a cell of our own."""

from amaranth.hdl import ClockSignal, Instance, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.placed import needs_source

__all__ = ["Lookup"]


class Lookup(wiring.Component):
    """`depth` rows of `width` bits with `ports` readers; a write is masked in parts of `granule` bits.

    Timing: read_data[i] shows the row at read_address[i] one cycle after read_en and holds it until the next
    read_en. A read in the cycle of a write to its address gives the old row.
    Reset: contents are not reset; they start as all ones in simulation.
    It is a cell placed by Instance: Amaranth's own simulator cannot see inside it.
    """

    def __init__(self, width: int, depth: int, ports: int, granule: int | None = None):
        granule = width if granule is None else granule
        if width % granule:
            raise ValueError(f"a lookup's width must be a multiple of its granule {granule}, not {width}")
        self.width = width
        self.depth = depth
        self.ports = ports
        self.granule = granule
        bits = ceil_log2(depth)
        super().__init__(
            {
                "read_en": In(1),
                "read_address": In(data.ArrayLayout(bits, ports)),
                "read_data": Out(data.ArrayLayout(width, ports)),
                "write_en": In(1),
                "write_address": In(bits),
                "write_mask": In(width // granule),
                "write_data": In(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        needs_source("plexus_lookup.sv")
        m = Module()
        m.submodules.storage = Instance(
            "plexus_lookup",
            p_WIDTH=self.width,
            p_DEPTH=self.depth,
            p_GRANULE=self.granule,
            p_ADDR=ceil_log2(self.depth),
            p_PORTS=self.ports,
            i_clk=ClockSignal(),
            i_ren=self.read_en,
            i_raddr=self.read_address,
            o_rdata=self.read_data,
            i_wen=self.write_en,
            i_waddr=self.write_address,
            i_wmask=self.write_mask,
            i_wdata=self.write_data,
        )
        return m
