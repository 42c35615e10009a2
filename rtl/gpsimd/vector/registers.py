"""The vector registers."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.ram import Ram

__all__ = ["VectorRegisters"]

_COUNT = 32


class VectorRegisters(wiring.Component):
    """32 registers of 32 bits a lane, 0 since the last reset. Three are read at once; bytes `mask` of one are written.

    Timing: what is read is there in the cycle after `read`, until the next, and does not see a write of the same cycle;
    `mask_register`, v0, is always there.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits = 32 * lanes
        super().__init__(
            {
                "read": In(1),
                "first": In(5),
                "second": In(5),
                "third": In(5),
                "first_data": Out(bits),
                "second_data": Out(bits),
                "third_data": Out(bits),
                "mask_register": Out(bits),
                "write": In(1),
                "number": In(5),
                "data": In(bits),
                "mask": In(4 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        known = Signal(_COUNT)  # written since reset; then all of it holds what it should
        bytes_ = Cat(bit.replicate(8) for bit in self.mask)
        masked = Signal(32 * self.lanes)
        m.d.comb += masked.eq(self.data & bytes_)
        had = known.bit_select(self.number, 1)
        with m.If(self.write):
            m.d.sync += known.bit_select(self.number, 1).eq(1)
            with m.If(self.number == 0):
                m.d.sync += self.mask_register.eq((self.mask_register & ~bytes_) | masked)

        def port(name: str, number: Value, data: Value) -> None:
            m.submodules[name] = ram = Ram(32 * self.lanes, _COUNT, 8)
            valid = Signal(name=f"{name}_known")
            with m.If(self.read):
                m.d.sync += valid.eq(known.bit_select(number, 1))
            m.d.comb += [
                ram.read_en.eq(self.read),
                ram.read_address.eq(number),
                ram.write_en.eq(self.write),
                ram.write_address.eq(self.number),
                ram.write_mask.eq(self.mask | ~had.replicate(4 * self.lanes)),
                ram.write_data.eq(Mux(had, self.data, masked)),
                data.eq(Mux(valid, ram.read_data, 0)),
            ]

        port("of_first", self.first, self.first_data)
        port("of_second", self.second, self.second_data)
        port("of_third", self.third, self.third_data)
        return m
