"""The registers of a scalar core as an instruction that is about to execute sees them."""

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Registers"]


class Registers(wiring.Component):
    """`first_value` and `second_value` of the registers `first` and `second`: of the youngest instruction that writes
    them, in the stages X, M and W (its `rd` is 0 if there is none). W's is kept. Register 0 is 0.

    Timing: reads combinational; what is in W is in the array in the next cycle.
    """

    first: In(5)
    second: In(5)
    x_rd: In(5)
    x_value: In(32)
    m_rd: In(5)
    m_value: In(32)
    w_rd: In(5)
    w_value: In(32)
    first_value: Out(32)
    second_value: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        registers = Array(Signal(32, name=f"x{n}") for n in range(32))

        def seen(number: Value) -> Value:
            kept = Mux(self.w_rd == number, self.w_value, registers[number])
            newer = Mux(self.m_rd == number, self.m_value, kept)
            return Mux(number == 0, 0, Mux(self.x_rd == number, self.x_value, newer))

        m.d.comb += [self.first_value.eq(seen(self.first)), self.second_value.eq(seen(self.second))]
        with m.If(self.w_rd != 0):
            m.d.sync += registers[self.w_rd].eq(self.w_value)
        return m
