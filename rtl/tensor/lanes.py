"""What travels between processing elements."""

from amaranth.hdl import Shape, Signal, Value
from amaranth.lib import data

from rtl.contract.config import TensorConfig
from rtl.contract.sparsity import SLOTS
from rtl.numeric.pe.operand import OPERAND
from rtl.numeric.pe.pe_operand import pe_operand

__all__ = [
    "NUMBERS",
    "OPERAND_BITS",
    "OTHERS",
    "RAW_BITS",
    "RAW_WORD",
    "SLOT_BITS",
    "moving_lane",
    "slot_of",
    "used_bits",
    "weight_bits",
    "weight_lane",
]

RAW_BITS = 32

RAW_WORD = data.StructLayout({"bits": RAW_BITS, "raw": 1})
"""One weight on its way south: what was not loaded as raw bits says so."""

NUMBERS = SLOTS * SLOTS
"""Numbers of a sparse beat that a row is given: its own and those of the other three of four rows."""

SLOT_BITS = (NUMBERS - 1).bit_length()
OPERAND_BITS = Shape.cast(OPERAND).width


OTHERS = data.ArrayLayout(OPERAND, NUMBERS - 1)
"""Those numbers but the first, which comes as the operand of the lane; they have a meaning beside a sparse lane only.
Apart from the lane, so that they need not move in other beats."""


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
    if tensor.sparsity:
        fields |= {"sparse": 1}  # the number that the weight's slot names
    return data.StructLayout(fields)  # type: ignore[arg-type]


def used_bits(tensor: TensorConfig) -> int:
    """Bits of a weight that the arithmetic reads, lowest: an operand, above a number its slot."""
    return max(Shape.cast(pe_operand(tensor.mx)).width, OPERAND_BITS + SLOT_BITS if tensor.sparsity else 0)


def weight_bits(tensor: TensorConfig) -> int:
    """Bits of a weight: what the arithmetic reads, or raw bits."""
    return max(used_bits(tensor), RAW_BITS)


def slot_of(weight: Signal) -> Value:
    """Which number of a sparse beat this weight meets; it stands where elements of dot products would."""
    return weight[OPERAND_BITS : OPERAND_BITS + SLOT_BITS]


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
