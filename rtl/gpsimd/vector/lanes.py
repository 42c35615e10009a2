"""What is computed for all elements of a register: in each lane of 32 bits up to four of them."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Repeated
from rtl.gpsimd.divide import Divide
from rtl.gpsimd.vector.element import Element
from rtl.gpsimd.vector.layouts import LANE

__all__ = ["vector_lanes"]

_WIDTHS = (32, 8, 16, 8)
"""Of the units of a lane, by the byte where their element begins: the first has elements of any width."""
_SHARED = ("lane", "clips", "clips_signed", "size", "mode", "step", "divides", "remainder")


class _Lane(wiring.Component):
    """Elements of 8 << `size` bits. carry, flag, saturates: a bit a byte, that of an element at its first byte; others
    are don't care. divides: a division of element `step` of `a` and `b` goes on, until `divided`, when `quotient` (or
    the remainder) is in all places of the lane.

    Timing: Element's; a division takes 18 cycles.
    """

    lane: In(LANE)
    clips: In(1)
    clips_signed: In(1)
    size: In(2)
    mode: In(2)
    step: In(2)
    divides: In(1)
    remainder: In(1)
    a: In(32)
    b: In(32)
    c: In(32)
    carry: In(4)
    early: Out(32)
    result: Out(32)
    flag: Out(4)
    saturates: Out(4)
    quotient: Out(32)
    divided: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = Signal(2)
        m.d.sync += size.eq(self.size)
        units = [Element(width) for width in _WIDTHS]
        for byte, unit in enumerate(units):
            m.submodules[f"element_{byte}"] = unit
            m.d.comb += [
                unit.lane.eq(self.lane),
                unit.clips.eq(self.clips),
                unit.clips_signed.eq(self.clips_signed),
                unit.size.eq(self.size),
                unit.mode.eq(self.mode),
                unit.a.eq(self.a[8 * byte : 8 * byte + unit.width]),
                unit.b.eq(self.b[8 * byte : 8 * byte + unit.width]),
                unit.c.eq(self.c[8 * byte : 8 * byte + unit.width]),
                unit.carry.eq(self.carry[byte]),
            ]
        m.d.comb += [
            self.flag.eq(Cat(unit.flag for unit in units)),
            self.saturates.eq(Cat(unit.saturates for unit in units)),
            self.early.eq(_joined(self.size, [unit.early for unit in units])),
            self.result.eq(_joined(size, [unit.result for unit in units])),
        ]

        m.submodules.divide = divide = Divide()
        m.d.comb += [
            divide.start.eq(self.divides),
            divide.end.eq(divide.done),
            divide.signed.eq(self.lane.signed),
            divide.remainder.eq(self.remainder),
            divide.first.eq(self._element(self.a)),
            divide.second.eq(self._element(self.b)),
            self.divided.eq(divide.done),
            self.quotient.eq(_joined(self.size, [divide.result] * 4)),
        ]
        return m

    def _element(self, word: Value) -> Value:
        """Element `step`, with its sign or zeros above."""
        half, byte = word.word_select(self.step[0], 16), word.word_select(self.step, 8)
        sign_half, sign_byte = half[-1] & self.lane.signed, byte[-1] & self.lane.signed
        wide_half, wide_byte = Cat(half, sign_half.replicate(16)), Cat(byte, sign_byte.replicate(24))
        return Mux(self.size == 2, word, Mux(self.size == 1, wide_half, wide_byte))


def _joined(size: Value, values: list[Value]) -> Value:
    """32 bits of the elements of a lane, each with what is above its width."""
    bytes_ = Cat(value[:8] for value in values)
    halves = Cat(values[0][:16], values[2][:16])
    return Mux(size == 2, values[0], Mux(size == 1, halves, bytes_))


def vector_lanes(lanes: int) -> Repeated:
    """So many lanes side by side; what their element does, its width and the rounding mode are common to all."""
    return Repeated(f"plexus_gpsimd_lanes_{lanes}", _Lane, lanes, shared=_SHARED)
