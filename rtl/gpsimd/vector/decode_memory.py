"""Loads and stores of vectors."""

from amaranth.hdl import Signal

from rtl.gpsimd.vector.decode_rules import Rules
from rtl.gpsimd.vector.layouts import Kind

__all__ = ["decode_memory"]


def decode_memory(rules: Rules) -> None:
    """Loads and stores (section 7)."""
    m, w, o = rules.m, rules.bits, rules.o
    mop, unit, fields = w[26:28], w[20:25], w[29:32]
    width = Signal(2)
    m.d.comb += [
        o.kind.eq(Kind.MEMORY),
        o.store.eq(w[5]),
        o.width.eq(width),
        o.strided.eq(mop == 2),
        o.indexed.eq(mop[0]),
        o.fields.eq(fields),
    ]
    with m.Switch(w[12:15]):
        with m.Case(0):
            m.d.comb += [width.eq(0), o.illegal.eq(w[28])]
        with m.Case(5):
            m.d.comb += [width.eq(1), o.illegal.eq(w[28])]
        with m.Case(6):
            m.d.comb += [width.eq(2), o.illegal.eq(w[28])]
    with m.If(mop == 0):
        with m.Switch(unit):
            with m.Case(0):
                pass
            with m.Case(0b01000):
                m.d.comb += [o.is_whole.eq(1), o.whole.eq(fields), o.fields.eq(0)]
                powers = (fields & (fields + 1)[:3]) == 0
                with m.If(~rules.bits[25] | ~powers | (rules.bits[5] & (width != 0))):
                    m.d.comb += o.illegal.eq(1)
            with m.Case(0b01011):
                m.d.comb += o.is_mask.eq(1)
                with m.If(~rules.bits[25] | (width != 0) | (fields != 0)):
                    m.d.comb += o.illegal.eq(1)
            with m.Case(0b10000):
                m.d.comb += o.first_only.eq(1)
                with m.If(rules.bits[5]):
                    m.d.comb += o.illegal.eq(1)
            with m.Default():
                m.d.comb += o.illegal.eq(1)
