"""RAM with one read and one write port, as a cell of our own."""

from amaranth.hdl import ClockSignal, Instance, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.placed import needs_source

__all__ = ["Ram"]


class Ram(wiring.Component):
    """`depth` rows of `width` bits; a write is masked in parts of `granule` bits (default: the row).

    Timing: read_data shows the row one cycle after read_en and holds it until the next read_en. A read
    in the cycle of a write to its address gives the old row.
    Reset: contents and read_data are not reset; they start as all ones in simulation.
    It is a cell placed by Instance: Amaranth's own simulator cannot see inside it.
    """

    def __init__(self, width: int, depth: int, granule: int | None = None):
        granule = width if granule is None else granule
        if depth < 2:
            raise ValueError(f"a RAM has at least 2 rows, not {depth}")
        if width < 1 or granule < 1 or width % granule:
            raise ValueError(f"a RAM's width must be a multiple of its granule {granule}, not {width}")
        self.width = width
        self.depth = depth
        self.granule = granule
        super().__init__(
            {
                "read_en": In(1),
                "read_address": In(ceil_log2(depth)),
                "read_data": Out(width),
                "write_en": In(1),
                "write_address": In(ceil_log2(depth)),
                "write_mask": In(width // granule),
                "write_data": In(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        needs_source("plexus_ram.sv")
        m = Module()
        m.submodules.storage = Instance(
            "plexus_ram",
            p_WIDTH=self.width,
            p_DEPTH=self.depth,
            p_GRANULE=self.granule,
            p_ADDR=ceil_log2(self.depth),
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
