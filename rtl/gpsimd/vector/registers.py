"""The vector registers."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.gpsimd.vector.active import bits_of

__all__ = ["VectorRegisters"]

_COUNT = 32
_WRITERS = 3


class VectorRegisters(wiring.Component):
    """32 registers of 32 bits a lane, 0 since the last reset. Bytes `mask` of up to three, not the same, are written.

    Timing: what is read, three with `read`, one with `read_stored` and two with `read_looked`, is there in the cycle
    after, until the next of its kind, and does not see a write of the same cycle; `mask_register`, v0, is always there.
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
                "read_stored": In(1),
                "stored": In(5),
                "stored_data": Out(bits),
                "read_looked": In(1),
                "index": In(5),
                "index_data": Out(bits),
                "looked": In(5),
                "looked_data": Out(bits),
                "mask_register": Out(bits),
                "write": In(1).array(_WRITERS),
                "number": In(5).array(_WRITERS),
                "data": In(bits).array(_WRITERS),
                "mask": In(4 * lanes).array(_WRITERS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = 32 * self.lanes
        m.submodules.memory = memory = Memory(shape=bits, depth=_COUNT, init=[])
        known = Signal(_COUNT)  # written since reset; then all of it holds what it should
        new, mask_register = Signal(_COUNT), Signal(bits)
        news, masks = known, self.mask_register
        for n in range(_WRITERS):
            number, write, data, mask = self.number[n], self.write[n], self.data[n], self.mask[n]
            bytes_, had = Signal(bits, name=f"bytes_{n}"), Signal(name=f"had_{n}")
            port = memory.write_port(granularity=8)
            m.d.comb += [
                bytes_.eq(bits_of(m, mask, f"bytes_{n}")),
                had.eq(known.bit_select(number, 1)),
                port.addr.eq(number),
                port.en.eq(Mux(write, mask | ~had.replicate(4 * self.lanes), 0)),
                port.data.eq(Mux(had, data, data & bytes_)),
            ]
            news |= Mux(write, (1 << number)[:_COUNT], 0)
            masks = Mux(write & (number == 0), (masks & ~bytes_) | (data & bytes_), masks)
        m.d.comb += [new.eq(news), mask_register.eq(masks)]
        m.d.sync += [known.eq(new), self.mask_register.eq(mask_register)]

        def port(name: str, read: Value, number: Value, data: Value) -> None:
            read_port, valid = memory.read_port(), Signal(name=f"{name}_known")
            with m.If(read):
                m.d.sync += valid.eq(known.bit_select(number, 1))
            m.d.comb += [read_port.en.eq(read), read_port.addr.eq(number), data.eq(Mux(valid, read_port.data, 0))]

        port("first", self.read, self.first, self.first_data)
        port("second", self.read, self.second, self.second_data)
        port("third", self.read, self.third, self.third_data)
        port("stored", self.read_stored, self.stored, self.stored_data)
        port("index", self.read_looked, self.index, self.index_data)
        port("looked", self.read_looked, self.looked, self.looked_data)
        return m
