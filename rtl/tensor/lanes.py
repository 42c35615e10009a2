"""What travels between processing elements."""

from amaranth.lib import data

from rtl.numeric.operand import OPERAND

__all__ = ["MOVING_LANE", "WEIGHT_LANE"]

MOVING_LANE = data.StructLayout(
    {
        "operand": OPERAND,
        "use": 1,  # multiply and add; otherwise the partial sum passes unchanged
        "swap": 1,  # take the shadow weight first, used or not
    }
)
"""One row's part of a moving beat, eastward one PE a cycle."""

WEIGHT_LANE = data.StructLayout({"operand": OPERAND, "valid": 1})
"""One row's part of a stationary beat, eastward one PE a cycle."""
