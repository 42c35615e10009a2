"""The registers of a scalar core as an instruction that is about to execute sees them."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["Registers"]


class Registers(wiring.Component):
    """`first_value` and `second_value` of the registers `first` and `second`: of the youngest instruction that writes
    them, in the stages X, M and W (its `rd` is 0 if there is none). W's is kept. Register 0 is 0, and
    so are all after a reset.

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

    def __init__(self):
        self.known = Signal(32)  # written since reset, others are 0; seen by proofs too
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.array = array = Memory(shape=32, depth=32, init=[])
        known = self.known
        write = array.write_port()

        def seen(number: Value) -> Value:
            read = array.read_port(domain="comb")
            m.d.comb += read.addr.eq(number)
            kept = Mux(
                (self.w_rd == number) & ~fault("a register does not see what stage W writes"),
                self.w_value,
                Mux(known.bit_select(number, 1), read.data, 0),
            )
            newer = Mux(self.m_rd == number, self.m_value, kept)
            return Mux(number == 0, 0, Mux(self.x_rd == number, self.x_value, newer))

        m.d.comb += [
            self.first_value.eq(seen(self.first)),
            self.second_value.eq(seen(self.second)),
            write.addr.eq(self.w_rd),
            write.data.eq(self.w_value),
            write.en.eq(self.w_rd != 0),
        ]
        with m.If(self.w_rd != 0):
            m.d.sync += known.bit_select(self.w_rd, 1).eq(1)
        return m
