"""Which elements an instruction computes: those of the body that the mask has, a register after the other."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

__all__ = ["Active", "bits_of", "body", "bytes_of", "log_elements"]


def log_elements(lanes: int, size: Value) -> Value:
    """Logarithm of how many elements of 1 << size bytes a register has."""
    most = exact_log2(4 * lanes)
    return Mux(size == 2, most - 2, Mux(size == 1, most - 1, most))


def body(m: Module, count: Value, name: str) -> Value:
    """The lowest `count` bits are 1, of half as many as a number of its width could tell."""
    bits: Value = Const(0, 1)  # 1 << n of them, the last 0
    for n, more in enumerate(count[:-1]):
        twice = Signal(2 << n, name=f"{name}_{n}")
        below = Const((1 << (1 << n)) - 1, 1 << n)
        m.d.comb += twice.eq(Mux(more, Cat(below, bits), bits))
        bits = twice
    all_of_them = Const((1 << len(bits)) - 1, len(bits))
    return Mux(count[-1], all_of_them, bits)


def bytes_of(elements: Value, size: Value, lanes: int) -> Value:
    """A bit a byte of a register: that of its element of 1 << size bytes, from a bit an element."""
    count = 4 * lanes
    whole = elements[:count]
    halves = Cat(bit.replicate(2) for bit in elements[: count // 2])
    quarters = Cat(bit.replicate(4) for bit in elements[: count // 4])
    return Mux(size == 2, quarters, Mux(size == 1, halves, whole))


def bits_of(m: Module, bytes_: Value, name: str) -> Value:
    """Eight bits for each of `bytes_`, of which there are four a lane.

    Of a concatenation of repeated bits a simulator makes a term for each bit of a register; this is a few a lane.
    """
    words: list[Value] = []
    for n in range(len(bytes_) // 4):
        four, apart = bytes_[4 * n : 4 * n + 4], Signal(32, name=f"{name}_apart_{n}")
        word = Signal(32, name=f"{name}_word_{n}")
        m.d.comb += [
            apart.eq((four | (four << 7) | (four << 14) | (four << 21)) & 0x01010101),
            word.eq((apart << 8) - apart),
        ]
        words.append(word)
    return Cat(*words)


class Active(wiring.Component):
    """`load`: `elements` and `carries` are from now on those of the first register; next: those of the next, elements
    of 1 << size bytes each, or with `by_one` those from the next element on.

    Timing: `element` and `carry`, a bit an element from the lowest on, in the cycle after.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        bits = 32 * lanes
        super().__init__(
            {
                "load": In(1),
                "elements": In(bits),
                "carries": In(bits),
                "next": In(1),
                "by_one": In(1),
                "size": In(2),
                "element": Out(bits),
                "carry": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for now, new in ((self.element, self.elements), (self.carry, self.carries)):
            with m.If(self.load):
                m.d.sync += now.eq(new)
            with m.Elif(self.next):
                of = [now >> (4 * self.lanes >> n) for n in range(3)]
                of_next = Mux(self.size == 2, of[2], Mux(self.size == 1, of[1], of[0]))
                m.d.sync += now.eq(Mux(self.by_one, now >> 1, of_next))
        return m
