"""What a row of the array takes in a beat: kinds, their formats, groups of elements, places of scales.

Elements that a row takes in one beat lie side by side in SBUF; such a group is one element of an access pattern.
Sources: Neuron ISA documentation (nc_matmul_mx: layout of scales); OCP MX 1.0 section 5.1 (blocks of 32).
"""

from enum import IntEnum

from rtl.contract.config_sections import TensorConfig
from rtl.contract.formats import FORMATS
from rtl.contract.isa import block
from rtl.contract.sparsity import SPARSE_FORMATS, Sparsity

__all__ = [
    "DOTS",
    "ELEMENTS",
    "FP4_CODES",
    "Kind",
    "SCALE_FORMATS",
    "SCALE_ROWS",
    "TAG_COLUMNS",
    "group_bytes",
    "kinds_of",
    "moving_bytes",
    "scale_partition",
    "scale_slots",
    "tag_elements",
]


class Kind(IntEnum):
    """How the array reads what a row is given, and what a processing element computes."""

    ONE = 0  # one number; fused multiply-add
    PAIR = 1  # two FP8 numbers ("double row"): exact sum of two products, one rounding, FP32 add
    QUAD = 2  # four FP8 or FP4 numbers of an MX block, E8M0 scales
    QUAD_E4M3 = 3  # the same with E4M3FN scales (NVFP4), only with tensor.nvfp4
    HIGH = 4  # an FP32 number rounded to 12 significant bits
    LOW = 5  # what that rounding leaves of it
    SPARSE = 6  # a kept number and its tag, which chooses one of up to 16 moving numbers; fused multiply-add
    RAW = 7  # bits, which TENSOR_TRANSPOSE moves: 16 bits are the upper half of 32


DOTS = (Kind.PAIR, Kind.QUAD, Kind.QUAD_E4M3)
"""Kinds of dot products; the others but RAW are numbers."""

ELEMENTS = {kind: 1 for kind in Kind} | {Kind.PAIR: 2, Kind.QUAD: 4, Kind.QUAD_E4M3: 4}
"""Numbers that a row takes in a beat; of a moving SPARSE operand Sparsity.ratio."""

_FORMATS: dict[Kind, tuple[str, ...]] = {
    Kind.ONE: ("bf16", "fp16", "tf32", "e4m3fn", "e4m3", "e5m2"),
    Kind.PAIR: ("e4m3fn", "e4m3", "e5m2"),
    Kind.QUAD: ("e4m3fn", "e5m2", "e2m1"),
    Kind.QUAD_E4M3: ("e4m3fn", "e2m1"),
    Kind.HIGH: ("fp32",),
    Kind.LOW: ("fp32",),
    Kind.SPARSE: SPARSE_FORMATS,
    Kind.RAW: ("fp32", "bf16", "fp16"),
}

SCALE_FORMATS = {Kind.QUAD: "e8m0", Kind.QUAD_E4M3: "e4m3fn"}
"""Format of the scales of the kinds that have any."""

SCALE_ROWS = {Kind.QUAD: 8, Kind.QUAD_E4M3: 4}
"""Rows that share a scale: a block is so many rows of four elements."""

TAG_COLUMNS = 4
"""Columns whose tags share an element of 16 bits, the first one's lowest."""

FP4_CODES = (0x00, 0x30, 0x38, 0x3C, 0x40, 0x44, 0x48, 0x4C, 0x80, 0xB0, 0xB8, 0xBC, 0xC0, 0xC4, 0xC8, 0xCC)
"""E4M3FN codes of the sixteen E2M1 numbers: the map that an instruction usually carries in imm0 and imm1."""


def kinds_of(tensor: TensorConfig) -> dict[Kind, tuple[str, ...]]:
    """Kinds that the array of this configuration has, and the formats that each takes."""
    has = {Kind.PAIR: tensor.mx, Kind.QUAD: tensor.mx, Kind.QUAD_E4M3: tensor.mx and tensor.nvfp4}
    has[Kind.SPARSE] = tensor.sparsity
    return {kind: formats for kind, formats in _FORMATS.items() if has.get(kind, True)}


def group_bytes(kind: Kind, dtype: str) -> int:
    """Bytes of what a row takes in a beat; of a stationary operand if the kind is SPARSE."""
    return ELEMENTS[kind] * FORMATS[dtype].bits // 8


def moving_bytes(pattern: Sparsity) -> int:
    """Bytes of what a row of a moving SPARSE operand takes in a beat; of three numbers the fourth place is empty."""
    return 4 if pattern.ratio == 2 else 8


def tag_elements(columns: int) -> int:
    """Elements of the tags of so many columns; the last one may be used in part."""
    return -(-columns // TAG_COLUMNS)


def scale_slots(kind: Kind) -> int:
    """Places, within the partitions of a block of Q = isa.block(P), at which scales may begin."""
    return SCALE_ROWS[kind] // 2


def scale_partition(kind: Kind, partitions: int, slot: int, row: int) -> int:
    """Partition that holds the scales of row `row` in slot `slot`: Q floor(r/Q) + o + floor((r mod Q) / rows)."""
    size = block(partitions)
    rows = SCALE_ROWS[kind]
    return row // size * size + slot * (size // rows) + row % size // rows
