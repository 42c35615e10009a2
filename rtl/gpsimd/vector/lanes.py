"""What is computed for all elements of a register."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.gpsimd.vector.element import Element
from rtl.gpsimd.vector.layouts import LANE, OPERANDS

__all__ = ["Lanes"]

_WIDTHS = (32, 8, 16, 8)
"""Of the units of a lane, by the byte where their element begins: the first has elements of any width."""


class Lanes(wiring.Component):
    """Elements of 8 << `size` bits of `lanes` lanes of 32. carry, flag, saturates: a bit a byte, that of an element at
    its first byte; others are don't care.

    Timing: Element's.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits = 32 * lanes
        super().__init__(
            {
                "lane": In(LANE),
                "operands": In(OPERANDS),
                "size": In(2),
                "mode": In(2),
                "a": In(bits),
                "b": In(bits),
                "c": In(bits),
                "carry": In(4 * lanes),
                "early": Out(bits),
                "result": Out(bits),
                "flag": Out(4 * lanes),
                "saturates": Out(4 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = Signal(2)
        m.d.sync += size.eq(self.size)
        flags: list[Value] = []
        saturates: list[Value] = []
        early: list[Value] = []
        results: list[Value] = []
        for n in range(self.lanes):
            units = [Element(width) for width in _WIDTHS]
            for byte, unit in enumerate(units):
                m.submodules[f"element_{n}_{byte}"] = unit
                place = 32 * n + 8 * byte
                m.d.comb += [
                    unit.lane.eq(self.lane),
                    unit.operands.eq(self.operands),
                    unit.size.eq(self.size),
                    unit.mode.eq(self.mode),
                    unit.a.eq(self.a[place : place + unit.width]),
                    unit.b.eq(self.b[place : place + unit.width]),
                    unit.c.eq(self.c[place : place + unit.width]),
                    unit.carry.eq(self.carry[4 * n + byte]),
                ]
                flags.append(unit.flag)
                saturates.append(unit.saturates)
            early.append(self._joined(self.size, [unit.early for unit in units]))
            results.append(self._joined(size, [unit.result for unit in units]))
        m.d.comb += [
            self.flag.eq(Cat(*flags)),
            self.saturates.eq(Cat(*saturates)),
            self.early.eq(Cat(*early)),
            self.result.eq(Cat(*results)),
        ]
        return m

    @staticmethod
    def _joined(size: Value, values: list[Value]) -> Value:
        """32 bits of the elements of a lane, each with what is above its width."""
        bytes_ = Cat(value[:8] for value in values)
        halves = Cat(values[0][:16], values[2][:16])
        return Mux(size == 2, values[0], Mux(size == 1, halves, bytes_))
