"""Bits of a layout as whole numbers by name, for what a bench does every cycle.

Amaranth's `from_bits` builds the shape of each field anew when it is read: a quarter of the time of a bench that
compares twenty fields of every instruction.
"""

from collections.abc import Callable
from typing import Any, cast

from amaranth.hdl import Shape
from amaranth.lib import data

__all__ = ["opened"]


def opened(layout: data.Layout) -> Callable[[int], Any]:
    """A type whose value of a word has each field of `layout` as an attribute: a number (of a signed shape with its
    sign), of an inner structure another such value, of an array a tuple. Errors: TypeError for what is no structure.
    """
    members: dict[str, Any] = {
        "__slots__": ("bits",),
        "__init__": _keep,
        "__repr__": _told,
        "names": tuple(layout.members),
    }
    for name in layout.members:
        members[name] = property(_reader(layout[name].shape, layout[name].offset))
    return cast(Callable[[int], Any], type("Opened", (), members))


def _keep(self: Any, bits: int) -> None:
    self.bits = bits


def _told(self: Any) -> str:
    return ", ".join(f"{name} {getattr(self, name)!r}" for name in self.names)


def _reader(shape: Any, offset: int) -> Callable[[Any], Any]:
    value = _value(shape)
    return lambda self: value(self.bits >> offset)


def _value(shape: Any) -> Callable[[int], Any]:
    """What the lowest bits of a word are as a value of `shape`."""
    if isinstance(shape, data.ArrayLayout):
        value, places = _value(shape.elem_shape), [shape[n].offset for n in range(shape.length)]
        return lambda word: tuple(value(word >> place) for place in places)
    width, signed = Shape.cast(shape).width, Shape.cast(shape).signed
    mask = (1 << width) - 1
    if isinstance(shape, data.StructLayout):
        inner = opened(shape)
        return lambda word: inner(word & mask)
    if signed:
        half = 1 << width - 1
        return lambda word: ((word & mask) ^ half) - half
    return lambda word: word & mask
