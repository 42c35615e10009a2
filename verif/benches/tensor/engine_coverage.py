"""What programs of the tensor engine's benches must have shown."""

from rtl.contract.formats import by_code
from rtl.contract.isa import Rounding
from rtl.contract.kinds import Kind
from rtl.contract.sparsity import PATTERNS
from rtl.contract.timing import STALLS, Engine
from verif.agents.bench import manifest
from verif.benches.tensor.engine_steps import GROUPS
from verif.checks.coverage import Coverage
from verif.golden.groups import RAW_FORMATS, formats_of

__all__ = ["COVERAGE", "NAN", "OF_BANKS", "OF_TILES", "STATES"]

NAN = "transpose of a NaN with a payload"
STATES = ("busy", "", *STALLS[Engine.TENSOR])
COVERAGE = Coverage(
    "tensor.engine",
    [f"{Kind(k).name} {by_code(d).name}" for k in range(8) for d in formats_of(k, manifest().config)]
    + [f"result {way.name}" for way in Rounding]
    + [f"sparsity {name}" for name in PATTERNS if manifest().config.tensor.sparsity]
    + ["accumulate", "overwrite", "one column", "as many columns as allowed", "matmul without a load"]
    + ["two loads in a row", "some rows only", "some columns only", "moving refused", "stationary refused"]
    + ["load hidden", "load exposed", "fill", "drain", "starved by SBUF", "matmul shorter than the minimum"]
    + [f"transpose {by_code(d).name}" for d in RAW_FORMATS]
    + ["transpose of some rows", "transpose of some columns", "transpose of a NaN with a payload"]
    + ["transpose that goes up", "transpose that goes down", "rows of a transpose beside sums", "transpose twice"]
    + ["matmul without a load after a transpose", "load after a transpose", "transpose hidden"],
)
OF_TILES = Coverage(
    "tensor.tiles",
    [f"tile {at} of {1 << k}" for k in range(GROUPS.bit_length()) for at in range(1 << k)]
    + ["sums of two tiles in one cycle", "sums of all groups in one cycle", "tiles of two sizes in a row"]
    + ["whole array after a load of one tile", "one tile after a load of the whole array", "a group without a row"]
    + ["wrong tags", "lost row", "bank of another tile", "bank of another tile after its end"]
    + [f"transpose in tile {at} of {1 << k}" for k in range(GROUPS.bit_length()) for at in range(1 << k)]
    + ["transposes of two tiles in one cycle", "transpose to a bank of sums", "sums to a bank of a transpose"],
)
"""Bins of an array with row groups."""
OF_BANKS = Coverage(
    "tensor.banks",
    ["sums meet a transpose", "a transpose meets sums", "several banks", "down over a bank's end", "free again"],
)
"""Bins of destinations anywhere in PSUM."""
