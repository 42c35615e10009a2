"""A register turned to where it lies in rows of memory, and how many bytes count."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.utils import exact_log2

__all__ = ["ones", "rotated"]


def ones(m: Module, bits: Value, name: str) -> Value:
    """How many are 1, of a power of two.

    Fields of a word are added all at once, each with a 0 above it that ends its carry: single bits, added in pairs,
    are as many terms for a simulator as there are bits.
    """
    counts: list[Value] = []
    width = min(len(bits), 32)
    for n in range(len(bits) // width):
        word: Value = bits[width * n : width * (n + 1)]
        for level in range(exact_log2(width)):
            step = 1 << level
            mask = sum(((1 << step) - 1) << place for place in range(0, width, 2 * step))
            added = Signal(width, name=f"{name}_{n}_{step}")
            m.d.comb += added.eq((word & mask) + ((word >> step) & mask))
            word = added
        counts.append(word[: exact_log2(width) + 1])
    while len(counts) > 1:
        counts = [a + b for a, b in zip(counts[::2], counts[1::2], strict=True)]
    return counts[0]


def rotated(m: Module, value: Value, places: Value, unit: int, name: str, *, right: bool = False) -> Value:
    """`value` rotated by `places` units of `unit` bits, to the left if not to the right."""
    for n, bit in enumerate(places):
        turned = Signal(len(value), name=f"{name}_{n}")
        by = unit << n
        m.d.comb += turned.eq(Mux(bit, value.rotate_right(by) if right else value.rotate_left(by), value))
        value = turned
    return value
