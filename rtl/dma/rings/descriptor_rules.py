"""The rules of a descriptor as values of its word: form, reachable cores, ranges, signal (docs/dma.md)."""

from functools import reduce
from operator import or_

from amaranth.hdl import Const, Mux, Value
from amaranth.lib.data import View

from rtl.base.dma_port import ROW_BYTES_BITS
from rtl.base.endpoint_number import has_endpoint
from rtl.base.fault import fault
from rtl.base.layouts import ADDRESS_LAYOUT
from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd, Indirect
from rtl.contract.isa import Update
from rtl.contract.memmap import CoreId, Space
from rtl.dma.layouts import PARTITION_SHIFT
from rtl.dma.rings.extent import Extent

__all__ = ["DescriptorRules"]

_COUNT_BITS = 17
_CORE = slice(CoreId.LSB, CoreId.LSB + CoreId.BITS)


class DescriptorRules:
    """Each rule is 1 where `word` breaks it, but `fits`. `side`: "source" or "destination"."""

    def __init__(self, cfg: Config, word: View, core_id: Value, *, link: bool):
        self.cfg = cfg
        self.word = word
        self.core_id = core_id
        self.link = link

    def malformed(self) -> Value:
        """The descriptor breaks a rule of its own fields."""
        word = self.word
        rows = word.row_bytes
        return (
            (rows == 0)
            | (rows > 1 << ROW_BYTES_BITS - 1)
            | (word.count0 == 0)
            | (word.count1 == 0)
            | (word.count2 == 0)
            | self._bad_indices()
            | (word.signal_update > max(Update))
            | ((word.class_ >= self.cfg.dma.classes) & ~fault("a class that a DMA has not is served"))
            | self._no_adders()
            | self._reserved(word.source)
            | self._reserved(word.destination)
            | self._reserved(word.signal_address)
        )

    def chooses(self) -> Value:
        """Indices choose rows of one side."""
        return self.word.indirect != Indirect.NONE

    def table(self, side: str) -> Value:
        """This side is the table."""
        return self.word.indirect == Indirect[side.upper()]

    def count(self, side: str, dimension: int) -> Value:
        """Rows of this side along a dimension; of a table all that there are."""
        count = getattr(self.word, f"count{dimension}")
        if dimension or not self.cfg.dma.indirect:
            return count
        return Mux(self.table(side), self.word.table_rows, count)

    def _bad_indices(self) -> Value:
        """What the descriptor says of indices makes no sense."""
        word = self.word
        said = word.index_skips | word.index_down | word.index.any() | word.table_rows.any()
        if not self.cfg.dma.indirect:
            return said | (self.chooses() & ~fault("a DMA without indices takes rows in order"))
        bad = (word.indirect > max(Indirect)) | (word.count2 != 1) | (word.table_rows == 0)
        return Mux(self.chooses(), bad, said)

    def indices(self) -> tuple[Value, Value]:
        """How many indices there are, and whether each lies in its partition, and this in SBUF."""
        word, cfg = self.word, self.cfg
        inner, outer = word.count0[:_COUNT_BITS], word.count1[:_COUNT_BITS]
        few = ~(word.count0[_COUNT_BITS:].any() | word.count1[_COUNT_BITS:].any())
        total = inner * outer
        down, along = Mux(word.index_down, inner, 1), Mux(word.index_down, outer, total)
        ends = (word.index[16:] + down <= cfg.partitions) & (word.index[:16] + along <= cfg.sbuf.partition_bytes >> 2)
        return total, few & (ends | fault("indices may lie behind their partition"))

    def _no_adders(self) -> Value:
        """A sum where none can be made."""
        return Const(0) if self.cfg.sbuf.adders else self.adds() & ~fault("a sum without adders is a copy")

    @staticmethod
    def _reserved(address: Value) -> Value:
        return View(ADDRESS_LAYOUT, address).zero.any()

    def foreign(self, address: Value) -> Value:
        """An address of another core."""
        return address[_CORE] != self.core_id

    def unreachable(self, side: str) -> Value:
        """This end is in another core, and there is no link, or the other end is too, or packets have no number for
        that core or this one."""
        address = getattr(self.word, side)
        away = self.foreign(address)
        if not self.link:
            return away
        return away & (
            ~self._numbered(address) | (self.foreign(self.word.source) if side == "destination" else Const(0, 1))
        )

    def signal_unreachable(self) -> Value:
        """The signal is in another core, and there is no link, or data come or go and it is not where they go to, or
        packets have no number for that core or this one."""
        at, word = self.word.signal_address, self.word
        away = self.foreign(at)
        if not self.link:
            return away
        inside = ~self.foreign(word.source) & ~self.foreign(word.destination)
        return away & (at[_CORE] != word.destination[_CORE]) & ~(inside & self._numbered(at))

    def _numbered(self, address: Value) -> Value:
        """Packets have a number for this core and that of `address`."""
        return has_endpoint(self.cfg, address[_CORE]) & has_endpoint(self.cfg, self.core_id)

    def no_semaphore(self) -> Value:
        """The signal's address is none of a semaphore."""
        at = View(ADDRESS_LAYOUT, self.word.signal_address)
        return (at.space != Space.SEMAPHORES) | at.offset[:2].any() | (at.offset[2:] >= self.cfg.issue.semaphores)

    def adds(self) -> Value:
        """The destination's bytes are added to."""
        return self.word.add != DmaAdd.COPY

    def misaligned(self, side: str) -> Value:
        """Address, steps or length of this side of a sum are no multiples of its elements."""
        word = self.word
        steps = reduce(or_, (getattr(word, f"{side}_step{n}")[:2] for n in range(3)))
        bits = (
            getattr(word, side)[:2] | word.row_bytes[:2] | Mux(fault("the steps of a sum may be misaligned"), 0, steps)
        )
        return self.adds() & (bits[0] | (bits[1] & (word.add != DmaAdd.BF16)))

    def fits(self, side: str, reach: Extent, length: Value) -> Value:
        """Every row of this side, `length` bytes long, lies in its memory."""
        cfg = self.cfg
        place = View(ADDRESS_LAYOUT, getattr(self.word, side))
        partition = place.offset[PARTITION_SHIFT:]
        byte = place.offset[:PARTITION_SHIFT]
        end = place.offset + (reach.up_high << PARTITION_SHIFT) + reach.up_low + length
        hbm = (end <= cfg.hbm.capacity_mib << 20) & (
            (reach.down_high << PARTITION_SHIFT) + reach.down_low <= place.offset
        )
        sbuf = (
            (partition + reach.up_high < cfg.partitions)
            & (reach.down_high <= partition)
            & (byte + reach.up_low + length <= cfg.sbuf.partition_bytes)
            & (reach.down_low <= byte)
        )
        return ~reach.over & Mux(place.space == Space.HBM, hbm, sbuf)
