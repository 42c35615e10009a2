"""What a row of the array takes in a beat: kinds, their formats, groups of elements, places of scales.

Elements that a row takes in one beat lie side by side in SBUF; such a group is one element of an access pattern.
Sources: Neuron ISA documentation (nc_matmul_mx: layout of scales); OCP MX 1.0 section 5.1 (blocks of 32).
"""

from enum import IntEnum

from rtl.contract.config_sections import TensorConfig
from rtl.contract.formats import FORMATS
from rtl.contract.isa import block

__all__ = [
    "DOTS",
    "ELEMENTS",
    "FP4_CODES",
    "Kind",
    "SCALE_FORMATS",
    "SCALE_ROWS",
    "group_bytes",
    "kinds_of",
    "scale_partition",
    "scale_slots",
]


class Kind(IntEnum):
    """How the array reads what a row is given, and what a processing element computes."""

    ONE = 0  # one number; fused multiply-add
    PAIR = 1  # two FP8 numbers ("double row"): exact sum of two products, one rounding, FP32 add
    QUAD = 2  # four FP8 or FP4 numbers of an MX block, E8M0 scales
    QUAD_E4M3 = 3  # the same with E4M3FN scales (NVFP4), only with tensor.nvfp4
    HIGH = 4  # an FP32 number rounded to 12 significant bits
    LOW = 5  # what that rounding leaves of it
    SPARSE = 6  # reserved
    RAW = 7  # bits, which TENSOR_TRANSPOSE moves: 16 bits are the upper half of 32


DOTS = (Kind.PAIR, Kind.QUAD, Kind.QUAD_E4M3)
"""Kinds of dot products; the others but RAW are numbers."""

ELEMENTS = {Kind.ONE: 1, Kind.PAIR: 2, Kind.QUAD: 4, Kind.QUAD_E4M3: 4, Kind.HIGH: 1, Kind.LOW: 1, Kind.RAW: 1}
"""Numbers that a row takes in a beat."""

_FORMATS: dict[Kind, tuple[str, ...]] = {
    Kind.ONE: ("bf16", "fp16", "tf32", "e4m3fn", "e4m3", "e5m2"),
    Kind.PAIR: ("e4m3fn", "e4m3", "e5m2"),
    Kind.QUAD: ("e4m3fn", "e5m2", "e2m1"),
    Kind.QUAD_E4M3: ("e4m3fn", "e2m1"),
    Kind.HIGH: ("fp32",),
    Kind.LOW: ("fp32",),
    Kind.RAW: ("fp32", "bf16", "fp16"),
}

SCALE_FORMATS = {Kind.QUAD: "e8m0", Kind.QUAD_E4M3: "e4m3fn"}
"""Format of the scales of the kinds that have any."""

SCALE_ROWS = {Kind.QUAD: 8, Kind.QUAD_E4M3: 4}
"""Rows that share a scale: a block is so many rows of four elements."""

FP4_CODES = (0x00, 0x30, 0x38, 0x3C, 0x40, 0x44, 0x48, 0x4C, 0x80, 0xB0, 0xB8, 0xBC, 0xC0, 0xC4, 0xC8, 0xCC)
"""E4M3FN codes of the sixteen E2M1 numbers: the map that an instruction usually carries in imm0 and imm1."""


def kinds_of(tensor: TensorConfig) -> dict[Kind, tuple[str, ...]]:
    """Kinds that the array of this configuration has, and the formats that each takes."""
    has = {Kind.PAIR: tensor.mx, Kind.QUAD: tensor.mx, Kind.QUAD_E4M3: tensor.mx and tensor.nvfp4}
    return {kind: formats for kind, formats in _FORMATS.items() if has.get(kind, True)}


def group_bytes(kind: Kind, dtype: str) -> int:
    """Bytes of what a row takes in a beat."""
    return ELEMENTS[kind] * FORMATS[dtype].bits // 8


def scale_slots(kind: Kind) -> int:
    """Places, within the partitions of a block of Q = isa.block(P), at which scales may begin."""
    return SCALE_ROWS[kind] // 2


def scale_partition(kind: Kind, partitions: int, slot: int, row: int) -> int:
    """Partition that holds the scales of row `row` in slot `slot`: Q floor(r/Q) + o + floor((r mod Q) / rows)."""
    size = block(partitions)
    rows = SCALE_ROWS[kind]
    return row // size * size + slot * (size // rows) + row % size // rows
