"""What travels between processing elements."""

from amaranth.hdl import Shape, Signal, Value
from amaranth.lib import data

from rtl.contract.config import TensorConfig
from rtl.contract.sparsity import SLOTS
from rtl.numeric.operand import OPERAND
from rtl.numeric.pe_operand import pe_operand

__all__ = [
    "NUMBERS",
    "OPERAND_BITS",
    "RAW_BITS",
    "RAW_WORD",
    "SLOT_BITS",
    "moving_bits",
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


def moving_bits(tensor: TensorConfig) -> int:
    """Bits of a row's part of a moving beat: an operand of the arithmetic, or the numbers of a sparse beat."""
    return max(Shape.cast(pe_operand(tensor.mx)).width, NUMBERS * OPERAND_BITS if tensor.sparsity else 0)


def moving_lane(tensor: TensorConfig) -> data.FlexibleLayout:
    """One row's part of a moving beat, eastward one PE a cycle. `operand` and `numbers` share their bits."""
    fields = {"operand": data.Field(pe_operand(tensor.mx), 0)}
    if tensor.sparsity:
        fields["numbers"] = data.Field(data.ArrayLayout(OPERAND, NUMBERS), 0)
    flags = [
        "use",  # multiply and add; otherwise the partial sum passes unchanged
        "swap",  # take the shadow weight first, used or not
    ]
    if tensor.mx:
        flags.append("dot")  # four products, not one
    if tensor.nvfp4:
        flags.append("scale_e4m3")
    if tensor.sparsity:
        flags.append("sparse")  # the number that the weight's slot names
    first = moving_bits(tensor)
    fields |= {name: data.Field(1, first + i) for i, name in enumerate(flags)}
    return data.FlexibleLayout(first + len(flags), fields)


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
