"""What a GPSIMD core reaches: which memory an address means, and whether it may be loaded or stored there."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.gpsimd import SHARED_BYTES, Counter, Mailbox, Region, lanes
from rtl.gpsimd.layouts import ACCESS, Place

__all__ = ["REGION_BIT", "Reach", "in_local"]

REGION_BIT = 28
"""Bits of an address from here on name a region."""

_ROW_BITS = 18
_STORED = ("BARRIER", "MTIMECMP", "MTIMECMPH", "WAIT_SEMAPHORE", "WAIT_VALUE", "WAIT_COMPARE", "TRAP_PC", "TRAP_VALUE")
_STORED += ("DONE", "PUT", "TRAP", "DMA_PUSH")
"""Registers of the mailbox that take stores."""
_LOADED = (*_STORED, "DMA_DONE", "DMA_FREE", "WAIT_STATUS", "CORE", "CORES", "LANES", "LOCAL_BYTES")
_LOADED += ("MTIME", "MTIMEH")
_PAGE_BITS = 14  # a page of registers, one of semaphores, one of semaphores that stores add to


def in_local(address: Value, local_bytes: int) -> Value:
    """A byte of local memory, by either of its addresses."""
    region, offset = address[REGION_BIT:], address[:REGION_BIT]
    regions = (region == Region.LOCAL >> REGION_BIT) | (region == Region.LOCAL_TOO >> REGION_BIT)
    return regions & (offset >> exact_log2(local_bytes) == 0)


class Reach(wiring.Component):
    """`place` and `allowed` of the access `i`, combinational. An access is aligned, and what is not allowed traps."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({"i": In(ACCESS), "place": Out(Place), "allowed": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        count = lanes(cfg.partitions)
        at = self.i.address[:REGION_BIT]
        partition, byte = at >> _ROW_BITS, at[:_ROW_BITS]
        mine = (partition < count) | fault("a core reaches partitions behind its own")
        with m.Switch(self.i.address[REGION_BIT:]):
            with m.Case(Region.LOCAL >> REGION_BIT, Region.LOCAL_TOO >> REGION_BIT):
                m.d.comb += [
                    self.place.eq(Place.LOCAL),
                    self.allowed.eq(in_local(self.i.address, cfg.gpsimd.local_bytes)),
                ]
            with m.Case(Region.SBUF_ROWS >> REGION_BIT):
                m.d.comb += [
                    self.place.eq(Place.ROWS),
                    self.allowed.eq(mine & (byte < cfg.sbuf.partition_bytes)),
                ]
            with m.Case(Region.SBUF_LANES >> REGION_BIT):
                m.d.comb += [
                    self.place.eq(Place.LANES),
                    self.allowed.eq(at < cfg.sbuf.partition_bytes * count),
                ]
            with m.Case(Region.SHARED >> REGION_BIT):
                m.d.comb += [
                    self.place.eq(Place.SHARED),
                    self.allowed.eq(at < SHARED_BYTES),
                ]
            with m.Case(Region.MAILBOX >> REGION_BIT):
                self._mailbox(m)
        return m

    def _mailbox(self, m: Module) -> None:
        """Whole words only: the semaphores that there are, and registers by what they take."""
        at = self.i.address[:REGION_BIT]
        page, place = at >> _PAGE_BITS, at[:_PAGE_BITS]
        semaphore = (page == Mailbox.SEMAPHORE_BASE >> _PAGE_BITS) | (page == Mailbox.SEMAPHORE_ADD >> _PAGE_BITS)
        exists = place < 4 * self.cfg.issue.semaphores
        register = Signal()
        with m.If(page == 0), m.Switch(place):
            for name in _LOADED:
                with m.Case(Mailbox[name]):
                    m.d.comb += register.eq(~self.i.write | (name in _STORED))
            with m.Default():
                argument = place < Mailbox.CORE
                counter = (place >= Mailbox.COUNTERS) & (place < Mailbox.COUNTERS + 8 * len(Counter))
                m.d.comb += register.eq(~self.i.write & (argument | counter))
        push = self.i.write & (page == 0) & (place == Mailbox.DMA_PUSH)
        m.d.comb += [
            self.place.eq(Mux(semaphore, Place.SEMAPHORE, Mux(push, Place.PUSH, Place.REGISTER))),
            self.allowed.eq((self.i.mask == 0b1111) & (register | (semaphore & exists))),
        ]
