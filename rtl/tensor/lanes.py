"""What travels between processing elements."""

from amaranth.hdl import Shape
from amaranth.lib import data

from rtl.contract.config import TensorConfig
from rtl.numeric.pe_operand import pe_operand

__all__ = ["RAW_BITS", "RAW_WORD", "moving_lane", "weight_bits", "weight_lane"]

RAW_BITS = 32

RAW_WORD = data.StructLayout({"bits": RAW_BITS, "raw": 1})
"""One weight on its way south: what was not loaded as raw bits says so."""


def moving_lane(tensor: TensorConfig) -> data.StructLayout:
    """One row's part of a moving beat, eastward one PE a cycle."""
    fields: dict[str, object] = {
        "operand": pe_operand(tensor.mx),
        "use": 1,  # multiply and add; otherwise the partial sum passes unchanged
        "swap": 1,  # take the shadow weight first, used or not
    }
    if tensor.mx:
        fields |= {"dot": 1}  # four products, not one
    if tensor.nvfp4:
        fields |= {"scale_e4m3": 1}
    return data.StructLayout(fields)  # type: ignore[arg-type]


def weight_bits(tensor: TensorConfig) -> int:
    """Bits of a weight: an operand of the arithmetic or raw bits."""
    return max(Shape.cast(pe_operand(tensor.mx)).width, RAW_BITS)


def weight_lane(tensor: TensorConfig) -> data.StructLayout:
    """One row's part of a stationary beat, eastward one PE a cycle."""
    return data.StructLayout(
        {
            "bits": weight_bits(tensor),
            "raw": 1,  # with valid: they are to be transposed
            "valid": 1,  # a weight, which pushes those before it east
            "shift": 1,  # instead: the shadow weight of the PE above comes
        }
    )
