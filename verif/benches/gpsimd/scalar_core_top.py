"""A scalar core beside a memory: what is RAM, what is a device and what is neither is decided here."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from rtl.gpsimd.layouts import scalar_ports
from rtl.gpsimd.scalar_core import ScalarCore

__all__ = ["DEVICE", "DEVICE_BYTES", "RAM", "RAM_BYTES", "ScalarCoreTop"]

RAM, RAM_BYTES = 0x1000_0000, 0x1_0000
_RAM_BITS = 16
DEVICE, DEVICE_BYTES = 0x4000_0000, 0x100


class ScalarCoreTop(wiring.Component):
    """ScalarCore whose `access_allowed` is true in RAM and for the device. ram: the upper bits of RAM's addresses; they
    are a program's, so that code runs at any. Timing: ScalarCore's."""

    def __init__(self, line_bits: int = 128, vectors: bool = True):
        self.core = ScalarCore(line_bits, vectors=vectors)
        ports = scalar_ports(line_bits, vectors)
        for name in ("access_allowed", *(("rows",) if vectors else ())):  # no vector is moved by rows
            del ports[name]
        super().__init__({**ports, "ram": In(32 - _RAM_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.core
        for name, member in self.signature.members.items():
            if name == "ram":
                continue
            inner, outer = getattr(core, name), getattr(self, name)
            if member.is_signature:
                connect(m, inner, flipped(outer))
            else:
                m.d.comb += outer.eq(inner) if member.flow == wiring.Out else inner.eq(outer)
        address = core.access.payload.address
        m.d.comb += core.access_allowed.eq((address[_RAM_BITS:] == self.ram) | (address[8:] == DEVICE >> 8))
        return m
