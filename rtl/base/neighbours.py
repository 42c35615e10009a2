"""How many elements of an access pattern lie side by side, so that an engine can take them at once."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data

from rtl.base.pattern import size_log2
from rtl.contract.access_pattern import DIMENSIONS
from rtl.contract.formats import FORMATS
from rtl.contract.memmap import Space

__all__ = ["is_small", "neighbours_log2"]

_SMALL = tuple(f.code for f in FORMATS.values() if f.bytes in (1, 2))
_PORT_BYTES_LOG2 = 3


def is_small(pattern: data.View) -> Value:
    """Whether its elements have 16 or 8 bits and lie in SBUF."""
    return (pattern.space == Space.SBUF) & Cat(*(pattern.dtype == code for code in _SMALL)).any()


def neighbours_log2(m: Module, pattern: data.View, name: str, most: int = 2) -> Value:
    """Logarithm of the largest aligned groups of neighbours, of 8 bytes or less, that the pattern consists of.

    It is at most `most`. rtl.contract.rates has the rule.
    """
    size = size_log2(m, pattern.dtype)
    limit = Signal(range(most + 1), name=f"{name}_limit")
    for log2 in range(1, most + 1):
        low = (1 << log2) - 1
        parts = [pattern.step0 == 1, (pattern.count0 & low) == 0]
        for k in range(1, DIMENSIONS):
            parts.append((pattern[f"count{k}"] == 1) | ((pattern[f"step{k}"].as_unsigned() & low) == 0))
        aligned = ((pattern.offset >> size)[:most] & low) == 0
        with m.If(Cat(*parts, aligned).all() & (size + log2 <= _PORT_BYTES_LOG2)):
            m.d.comb += limit.eq(log2)
    return limit
