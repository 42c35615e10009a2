"""What enters the arithmetic of a processing element: one operand, or four elements and the scale of their block.

Both share their bits, for a beat is one or the other; `mx` = False leaves the operand alone.
"""

from functools import cache

from amaranth.hdl import Shape
from amaranth.lib import data

from rtl.numeric.pe.element import ELEMENT, ELEMENTS
from rtl.numeric.pe.operand import OPERAND

__all__ = ["pe_operand"]


@cache
def pe_operand(mx: bool = True) -> data.Layout:
    """Fields `operand` (bits 21:0) and, with `mx`, `elements` (39:0) and `scale` (47:40)."""
    if not mx:
        return data.StructLayout({"operand": OPERAND})
    elements = data.ArrayLayout(ELEMENT, ELEMENTS)
    width = Shape.cast(elements).width
    return data.FlexibleLayout(
        width + 8,
        {
            "operand": data.Field(OPERAND, 0),
            "elements": data.Field(elements, 0),
            "scale": data.Field(8, width),
        },
    )
