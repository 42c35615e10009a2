"""A vector unit beside a memory: what is RAM, what is a device and what is neither is decided here."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.gpsimd.vector.unit import VectorUnit

__all__ = ["DEVICE", "DEVICE_BYTES", "RAM", "RAM_BYTES", "VectorUnitTop"]

RAM, RAM_BYTES = 0x1000_0000, 0x1000
DEVICE, DEVICE_BYTES = 0x4000_0000, 0x100


class VectorUnitTop(wiring.Component):
    """VectorUnit with `allowed` and `in_rows` for RAM and a device; `slowly`: no rows. Timing: VectorUnit's."""

    def __init__(self, lanes: int = 4):
        self.unit = VectorUnit(lanes)
        ports = dict(self.unit.signature.members)
        for name in ("allowed", "in_rows", "in_lanes", "span_first", "span_last"):
            del ports[name]
        super().__init__({**ports, "slowly": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        for name, member in self.signature.members.items():
            if name == "slowly":
                continue
            inner, outer = getattr(unit, name), getattr(self, name)
            if member.is_signature:
                connect(m, inner, flipped(outer))
            elif member.dimensions:
                m.d.comb += Cat(outer).eq(Cat(inner))
            else:
                m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
        address, first, last = unit.access.payload.address, unit.span_first, unit.span_last
        in_ram = (first[12:] == RAM >> 12) & (last[12:] == RAM >> 12)
        m.d.comb += [
            unit.allowed.eq((address[12:] == RAM >> 12) | (address[8:] == DEVICE >> 8)),
            unit.in_rows.eq(in_ram & ~self.slowly),
        ]
        return m
