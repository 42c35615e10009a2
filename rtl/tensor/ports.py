"""The port list of the systolic array, the same for the structural and the native form.

Per quadrant in, per row group out. All ports are unskewed: a moving beat holds one column of the
moving operand, a stationary beat one column of the stationary operand; sums of a moving beat leave
timing.array_latency cycles after it entered, one vector at once. docs/tensor-array.md shows the timing.
"""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import Config

__all__ = ["MODE_BITS", "ArraySignature", "moving_beat", "row_groups", "stationary_beat", "sum_row"]

MODE_BITS = 8  # bits 3:0 dtype code of this operand, 6:4 rtl.contract.kinds.Kind, 7 reserved, 0
TICKET_BITS = 8


def row_groups(cfg: Config) -> int:
    """Row groups that can run different matmuls: min(4, rows / 8)."""
    return min(4, cfg.tensor.rows // 8)


def stationary_beat(cfg: Config) -> data.StructLayout:
    """One quadrant of one column of weights; the column that enters first ends farthest east."""
    rows = cfg.tensor.rows // QUADRANTS
    return data.StructLayout(
        {
            "valid": 1,
            "mode": MODE_BITS,
            "active": rows,  # rows that take the weight; the others keep theirs
            "data": 64 * rows,  # row r at bits 64r; BF16 and FP16 use the low 16
            "scale": 8 * rows,
        }
    )


def moving_beat(cfg: Config) -> data.StructLayout:
    """One quadrant of one column of the moving operand."""
    rows = cfg.tensor.rows // QUADRANTS
    return data.StructLayout(
        {
            "valid": 1,
            "mode": MODE_BITS,
            "ticket": TICKET_BITS,
            "swap": 1,  # with valid: every row of the quadrant takes its shadow weights, from this beat on
            "active": rows,  # rows outside pass the partial sum through unchanged
            "data": 64 * rows,
            "scale": 8 * rows,
        }
    )


def sum_row(cfg: Config) -> data.StructLayout:
    """One row of sums of one row group: column c at bits 32c. `data` has no meaning without `valid`."""
    return data.StructLayout({"valid": 1, "ticket": TICKET_BITS, "data": 32 * cfg.tensor.cols})


class ArraySignature(wiring.Signature):
    """Seen from the array. With all four quadrants valid in a cycle, the whole array is one group and
    its sums leave at `sums[0]`; row groups on their own come with a later mode."""

    def __init__(self, cfg: Config):
        super().__init__(
            {
                "stationary": In(stationary_beat(cfg)).array(QUADRANTS),
                "moving": In(moving_beat(cfg)).array(QUADRANTS),
                "sums": Out(sum_row(cfg)).array(row_groups(cfg)),
            }
        )
