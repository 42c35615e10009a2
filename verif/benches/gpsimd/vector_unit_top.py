"""A vector unit beside a memory: what is RAM, what is a device and what is neither is decided here."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from rtl.gpsimd.layouts import look_ports
from rtl.gpsimd.lookup import LocalLookup
from rtl.gpsimd.vector.unit import VectorUnit

__all__ = ["DEVICE", "DEVICE_BYTES", "RAM", "RAM_BYTES", "VectorUnitTop"]

RAM, RAM_BYTES = 0x1000_0000, 0x1000
DEVICE, DEVICE_BYTES = 0x4000_0000, 0x100


class VectorUnitTop(wiring.Component):
    """VectorUnit with `allowed` and `in_rows` for RAM and a device, and LocalLookup for RAM.

    Spans that begin in the upper half of RAM are `beyond`. `slowly`: no rows, and no words. bank_*: LocalLookup's;
    banks: what they read in the cycle before. Timing: VectorUnit's.
    """

    def __init__(self, lanes: int = 4):
        self.unit = VectorUnit(lanes)
        ports = dict(self.unit.signature.members)
        for name in ("allowed", "in_rows", "beyond", "span_first", "span_last", *look_ports(lanes)):
            del ports[name]
        self.lookup = LocalLookup(lanes, exact_log2(RAM_BYTES // (4 * lanes)))
        of_lookup = {
            "has_kept_word": In(1),
            "kept_word": In(len(self.lookup.kept_word)),
            "stalls": In(lanes),
            "bank_en": Out(lanes),
            "bank_row": Out(self.lookup.row_bits).array(lanes),
            "bank_data": Out(32 * lanes),
            "bank_write": Out(1),
            "banks": In(32 * lanes),
        }
        super().__init__({**ports, **of_lookup, "slowly": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        for name, member in self.signature.members.items():
            if not hasattr(unit, name):
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
            unit.beyond.eq(first[11]),
        ]
        m.submodules.lookup = lookup = self.lookup
        lanes = range(unit.lanes)
        words = [unit.look_address.word_select(n, 32) for n in lanes]
        m.d.comb += [
            lookup.en.eq(unit.look_en),
            lookup.address.eq(unit.look_address),
            lookup.inside.eq(Cat((word[12:] == RAM >> 12) & ~self.slowly for word in words)),
            lookup.has_kept_word.eq(self.has_kept_word),
            lookup.kept_word.eq(self.kept_word),
            lookup.data.eq(unit.look_data),
            lookup.stalls.eq(self.stalls),
            lookup.line.eq(self.banks),
            unit.look_allowed.eq(lookup.allowed),
            unit.look_ready.eq(lookup.ready),
            unit.look_found.eq(lookup.found),
            self.bank_en.eq(lookup.bank_en),
            Cat(self.bank_row).eq(Cat(lookup.bank_row)),
            self.bank_data.eq(lookup.bank_data),
            self.bank_write.eq(unit.look_write),
        ]
        return m
