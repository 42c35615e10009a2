"""A register turned to where it lies in rows of memory, and how many bytes count."""

from amaranth.hdl import Module, Mux, Signal, Value

__all__ = ["ones", "rotated"]


def ones(bits: Value) -> Value:
    """How many are 1."""
    half = len(bits) // 2
    return ones(bits[:half]) + ones(bits[half:]) if half else bits


def rotated(m: Module, value: Value, places: Value, unit: int, name: str, *, right: bool = False) -> Value:
    """`value` rotated by `places` units of `unit` bits, to the left if not to the right."""
    for n, bit in enumerate(places):
        turned = Signal(len(value), name=f"{name}_{n}")
        by = unit << n
        m.d.comb += turned.eq(Mux(bit, value.rotate_right(by) if right else value.rotate_left(by), value))
        value = turned
    return value
