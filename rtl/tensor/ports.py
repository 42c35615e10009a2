"""The port list of the systolic array, the same for the structural and the native form.

Per quadrant in, per row group out. All ports are unskewed: a moving beat holds one column of the
moving operand, a stationary beat one column of the stationary operand; sums of a row group leave
timing.array_latency cycles after the beat entered, one vector at once. docs/tensor-array.md shows the timing.
"""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import Config
from rtl.contract.sparsity import TAG_BITS

__all__ = ["MODE_BITS", "ArraySignature", "moving_beat", "row_groups", "stationary_beat", "sum_row"]

MODE_BITS = 10  # bits 3:0 dtype code of this operand; 6:4 contract.kinds.Kind; 9:7 Sparsity.code, 0 unless SPARSE
TICKET_BITS = 8


def row_groups(cfg: Config) -> int:
    """Row groups that can run different matmuls: min(4, rows / 8, tensor.row_groups)."""
    return cfg.tensor.groups


def stationary_beat(cfg: Config) -> data.StructLayout:
    """One quadrant of one column of weights; the column that enters first ends farthest east.

    With `shift` in a row group's first quadrant the beat carries nothing: the group's shadow weights move one row
    south instead, all of them, and what was in its last row leaves at `transposed` if its last quadrant has `tail`.
    `tags`, of kind SPARSE: which number of its bus a row's weight meets (rtl.contract.sparsity), row r at bits 4r.
    """
    return data.StructLayout(
        _rows(cfg, {"tags": TAG_BITS})  # active: rows that take the weight; the others keep theirs
        | {
            "valid": 1,
            "mode": MODE_BITS,
            "ticket": TICKET_BITS,  # of a shift
            "shift": 1,
            "head": 1,  # of a shift, in a row group's first quadrant: nothing comes from the group above
            "tail": 1,
        }
    )


def moving_beat(cfg: Config) -> data.StructLayout:
    """One quadrant of one column of the moving operand. Of kind SPARSE a row has four numbers, number e at bits 16e of
    its data, and each of the aligned four rows in which it stands meets the sixteen of all four, active or not."""
    return data.StructLayout(
        _rows(cfg, {})  # active: rows outside pass the partial sum through unchanged
        | {
            "valid": 1,
            "mode": MODE_BITS,
            "ticket": TICKET_BITS,
            "swap": 1,  # with valid: every row of the quadrant takes its shadow weights, from this beat on
            "head": 1,  # in a row group's first quadrant: the column chains start here, from +0
            "tail": 1,  # in a row group's last quadrant: they leave here, at the group's sums
        }
    )


def _rows(cfg: Config, more: dict[str, int]) -> dict[str, int]:
    """What a beat has for each row. First, where it is aligned: a simulator copies words, not bits."""
    rows = cfg.tensor.rows // QUADRANTS
    return {
        "data": 64 * rows,  # row r at bits 64r, its code lowest
        "scale": 8 * rows,  # of the code's block
        **{name: bits * rows for name, bits in more.items()},
        "active": rows,
    }


def sum_row(cfg: Config) -> data.StructLayout:
    """One row that leaves a row group: column c at bits 32c. `data` has no meaning without `valid`."""
    return data.StructLayout({"data": 32 * cfg.tensor.cols, "ticket": TICKET_BITS, "valid": 1})


class ArraySignature(wiring.Signature):
    """Seen from the array. The column chains of a moving beat go from the nearest `head` above it, or row 0,
    down to a `tail`, whose ticket they carry, and leave at `sums` of its row group. A beat of the whole array
    has its head in quadrant 0 and its tail in quadrant 3; chains of different rows share a cycle."""

    def __init__(self, cfg: Config):
        super().__init__(
            {
                "stationary": In(stationary_beat(cfg)).array(QUADRANTS),
                "moving": In(moving_beat(cfg)).array(QUADRANTS),
                "sums": Out(sum_row(cfg)).array(row_groups(cfg)),
                "transposed": Out(sum_row(cfg)).array(row_groups(cfg)),  # raw bits, 0 for what was not loaded as such
            }
        )
