"""Whether a packet may be executed here."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.layouts import ADDRESS_LAYOUT
from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import Update
from rtl.contract.link import PACKET_BYTES_MAX, PacketOpcode
from rtl.contract.memmap import CoreId, Space
from rtl.dma.fabric.packets import RECEIVED, added, flagged
from rtl.dma.layouts import PARTITION_SHIFT

__all__ = ["Admit"]


class Admit(wiring.Component):
    """`good`: a request that this core may execute: opcode, length, alignment and memory of a sum, endpoint, core,
    space, range and signal are right. `foreign`: endpoint or core is another. `to_sbuf`: its memory. docs/endpoint.md
    has the rules as a table.
    Timing: combinational.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "core_id": In(CoreId.BITS),
                "packet": In(RECEIVED),
                "good": Out(1),
                "foreign": Out(1),
                "to_sbuf": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        header = self.packet.header
        place = View(ADDRESS_LAYOUT, header.address)
        size = Signal(10)
        with m.If(~fault("a payload may leave its memory by its own length")):
            m.d.comb += size.eq(header.length_bytes)

        here = Signal()
        away = Signal()  # the endpoint in the flits' header is another
        inside = Signal()
        length = Signal()
        signal = Signal()
        m.d.comb += [
            here.eq(header.address[CoreId.LSB : CoreId.LSB + CoreId.BITS] == self.core_id),
            away.eq(self.packet.foreign & ~fault("a packet for another endpoint is executed")),
            self.foreign.eq(away | ~here),
            self.to_sbuf.eq(place.space == Space.SBUF),
            signal.eq(
                ~flagged(header)
                | (
                    (self.packet.signal.index < cfg.issue.semaphores)
                    & (self.packet.signal.update != Update.NONE)
                    & (self.packet.signal.update <= max(Update))
                    & (self.packet.signal.reserved == 0)
                )
            ),
        ]
        with m.Switch(place.space):
            with m.Case(Space.HBM):
                m.d.comb += inside.eq(place.offset + size <= cfg.hbm.capacity_mib << 20)
            with m.Case(Space.SBUF):
                m.d.comb += inside.eq(
                    (place.offset[PARTITION_SHIFT:] < cfg.partitions)
                    & (place.offset[:PARTITION_SHIFT] + size <= cfg.sbuf.partition_bytes)
                )
        whole = (header.length_bytes != 0) & (header.length_bytes <= PACKET_BYTES_MAX)
        words = ~(header.length_bytes[:2].any() | place.offset[:2].any())
        add = Signal()  # a write that adds may do so
        with m.Switch(added(header)):
            with m.Case(DmaAdd.COPY):
                m.d.comb += add.eq(1)
            with m.Case(DmaAdd.BF16):
                m.d.comb += add.eq(self.to_sbuf & ~(header.length_bytes[0] | place.offset[0]))
            with m.Default():
                m.d.comb += add.eq(self.to_sbuf & words)
        with m.Switch(header.opcode):
            with m.Case(PacketOpcode.WRITE):
                m.d.comb += length.eq(
                    whole & inside & (add | fault("an endpoint adds whatever the packet's alignment"))
                )
            with m.Case(PacketOpcode.READ):
                m.d.comb += length.eq(whole & inside & ~flagged(header))
            with m.Case(PacketOpcode.ADD):
                m.d.comb += length.eq(whole & words & inside)
            with m.Case(PacketOpcode.FETCH_ADD):
                some = (header.length_bytes == 4) | (header.length_bytes == 8)
                m.d.comb += length.eq(some & words & inside)
            with m.Case(PacketOpcode.SIGNAL):
                m.d.comb += length.eq((header.length_bytes == 0) & (place.space == Space.SEMAPHORES) & flagged(header))
        adders = Const(1) if self.cfg.sbuf.adders else fault("a packet that adds is admitted without adders")
        m.d.comb += self.good.eq(
            ~self.foreign
            & (place.zero == 0)
            & length
            & signal
            & self.packet.whole
            & (header.reserved == 0)
            & ((added(header) == DmaAdd.COPY) | (adders & (header.opcode == PacketOpcode.WRITE)))
            & ~header.flags[3]
        )
        return m
