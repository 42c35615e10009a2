"""Golden model of what issue asks of the operands of an instruction, one by one and together.

Written from docs/isa.md with exact integers; shares encodings with the hardware, no code and no table.
"""

from collections.abc import Mapping, Sequence

from rtl.contract.config import Config
from rtl.contract.isa import Cause, Opcode
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from verif.golden.groups import (
    RAW_FORMATS,
    bytes_of,
    formats_of,
    kept_of,
    moving_bytes_of,
    scale_format_of,
    scale_rows_of,
)

__all__ = ["OPERANDS", "columns", "elements", "first_byte", "operand", "scales", "together"]

Fields = Mapping[str, int]

_TWO_SOURCES = (33, 35, 37, 38, 39, 46, 47)
OPERANDS: dict[int, tuple[str, ...]] = {
    Opcode.LOAD_STATIONARY: ("src0", "src1"),
    Opcode.MULTIPLY_MOVING: ("src0", "src1", "dst"),
    Opcode.TENSOR_TRANSPOSE: ("src0", "dst"),
    **{opcode: ("src0", "src1", "dst") if opcode in _TWO_SOURCES else ("src0", "dst") for opcode in range(32, 52)},
    Opcode.MEMSET: ("dst",),
    Opcode.ACTIVATION: ("src0", "dst"),
    Opcode.LOAD_TABLE: ("src0",),
    Opcode.SCALAR_COPY: ("src0", "dst"),
    Opcode.SCALAR_AFFINE: ("src0", "dst"),
    Opcode.GP_LOAD: ("src0",),
    Opcode.GP_STORE: ("dst",),
}
"""Operands of each opcode that has any."""
_BYTES = {0: 4, 1: 2, 2: 2, 3: 4, 4: 1, 5: 1, 6: 1, 9: 1, 10: 2, 11: 4, 12: 1, 13: 2, 14: 4, 8: 1}  # by dtype code
_TF32 = 3
_SPARSE = 6
_ALIGNED = 4  # rows that a sparse operand begins at a multiple of
_READABLE = tuple(code for code in _BYTES if code not in (_TF32, 8))
_INTEGERS = (9, 10, 11, 12, 13, 14)
_ELEMENTS = 131072
_SBUF_ONLY = (41, 42, 45, 46, 47, 48, 49)  # destinations
_BLOCKS = (Opcode.TRANSPOSE, Opcode.SHUFFLE)
_MX = Opcode.QUANTIZE_MX
_MX_COLUMN = {4: 4, 6: 4, 7: 2}  # bytes of four elements
_COUNTS = {  # least and most elements, where they are not those of all
    (41, "src0"): (1, 512),
    (41, "dst"): (6, 6),
    (42, "dst"): (2, 2),
    **{(opcode, "src0"): (8, 16384) for opcode in (45, 46, 47)},
    (45, "dst"): (8, 8),
    (46, "dst"): (8, 8),
    (46, "src1"): (8, 8),
    (47, "src1"): (8, 8),
}
_FREE_COUNTS = {(opcode, "src0") for opcode in (41, 42, 45, 46)} | {(46, "src1"), (47, "src1")}
"""Sources that need not have as many elements as the destination."""


def _dims(f: Fields, name: str) -> list[tuple[int, int]]:
    return [(f[f"{name}_step{i}"], f[f"{name}_count{i}"]) for i in range(4)]


def _elements(dims: Sequence[tuple[int, int]]) -> int:
    n = 1
    for _, count in dims:
        n *= count
    return n


def _starts(count: int, partitions: int) -> tuple[int, ...]:
    """Partitions at which `count` of them may start."""
    quarter = partitions // 4
    if not 1 <= count <= partitions:
        return ()
    if count <= quarter:
        return (0, quarter, 2 * quarter, 3 * quarter)
    return (0, 2 * quarter) if count <= 2 * quarter else (0,)


def _formats(name: str, opcode: int, kind: int, cfg: Config) -> dict[int, tuple[int, ...]]:
    """Memories of an operand, and which formats it may have there."""
    sbuf, psum = int(Space.SBUF), int(Space.PSUM)
    if opcode < 32:
        if name == "src1":
            return {sbuf: (13,) if kind == _SPARSE else (scale_format_of(kind),)}
        if name == "dst":
            return {psum: (0,)}
        if opcode == Opcode.TENSOR_TRANSPOSE:
            return {sbuf: RAW_FORMATS if kind == Kind.RAW else ()}
        return {sbuf: formats_of(kind, cfg)}
    if opcode in (Opcode.LOAD_TABLE, Opcode.GP_LOAD, Opcode.GP_STORE):
        return {sbuf: (14,)}
    if opcode == _MX:
        return {sbuf: tuple(_MX_COLUMN) if name == "dst" else (1, 2)}
    if name != "dst":
        return {sbuf: _READABLE, psum: (0,)}
    if opcode == Opcode.FIND_INDEX8:
        return {sbuf: (13, 14)}
    if opcode in _BLOCKS:
        return {sbuf: _READABLE}
    written = (*_READABLE, _TF32)
    return {sbuf: written} if opcode in _SBUF_ONLY else {sbuf: written, psum: (0,)}


def _scales_lie_well(f: Fields, cfg: Config) -> bool:
    """Whether src1 names a slot of the block of partitions in which src0 begins, or, of tags, those of src0."""
    if f["kind"] == _SPARSE:
        return all(f[f"src1_partition_{end}"] == f[f"src0_partition_{end}"] for end in ("start", "count"))
    size, rows = min(32, cfg.partitions), scale_rows_of(f["kind"])
    slot, odd = divmod(f["src1_partition_start"] - f["src0_partition_start"] // size * size, size // rows)
    return odd == 0 and 0 <= slot < rows // 2 and f["src1_partition_count"] == size // rows


def _number(name: str, opcode: int, n: int, cfg: Config) -> bool:
    """Whether an operand may have n elements on each partition."""
    most = {16: cfg.tensor.cols, 17: cfg.tensor.moving_max}.get(opcode, _ELEMENTS)
    most = cfg.tensor.cols if (opcode, name) == (Opcode.TENSOR_TRANSPOSE, "src0") else most
    least, most = _COUNTS.get((opcode, name), (1, most))
    multiple = {Opcode.TRANSPOSE: min(32, cfg.partitions), Opcode.LOAD_TABLE: 2}.get(Opcode(opcode), 1)
    if opcode == _MX and name == "src0":
        multiple = 16
    if (opcode, name) == (Opcode.BN_AGGR, "src0"):
        multiple = 3
    return least <= n <= most and n % multiple == 0


def operand(f: Fields, name: str, cfg: Config) -> Cause:
    """The first rule an operand breaks."""
    opcode, space, dtype = f["opcode"], f[f"{name}_space"], f[f"{name}_dtype"]
    start, count = f[f"{name}_partition_start"], f[f"{name}_partition_count"]
    dims = _dims(f, name)
    allowed = _formats(name, opcode, f["kind"], cfg)
    if space not in allowed:
        return Cause.BAD_SPACE
    if dtype not in allowed[space]:
        return Cause.ILLEGAL_DTYPE
    sums = opcode < 32 and name == "dst"
    array = opcode < 32 and not sums
    end = cfg.tensor.cols if sums else cfg.tensor.rows if opcode < 32 else cfg.partitions
    if array and name == "src1":
        if not _scales_lie_well(f, cfg):
            return Cause.BAD_PARTITION
    elif start not in _starts(count, cfg.partitions) or start + count > end or (sums and start):
        return Cause.BAD_PARTITION
    elif array and count > cfg.tensor.rows >> f["tile"]:
        return Cause.BAD_PARTITION
    elif array and (start % scale_rows_of(f["kind"]) or count % scale_rows_of(f["kind"])):
        return Cause.BAD_PARTITION
    elif array and f["kind"] == _SPARSE and (start % _ALIGNED or count % kept_of(f["sparsity"])):
        return Cause.BAD_PARTITION
    block = min(32, cfg.partitions)
    if opcode in _BLOCKS and (start % block or count % block):
        return Cause.BAD_PARTITION
    size = together_bytes = bytes_of(f["kind"], dtype) if array and name == "src0" else _BYTES.get(dtype, 0)
    if array and name == "src0" and f["kind"] == _SPARSE and opcode == Opcode.MULTIPLY_MOVING:
        size = together_bytes = moving_bytes_of(f["sparsity"])
    if opcode == _MX:
        if start % 8 or count % 8:
            return Cause.BAD_PARTITION
        size = _MX_COLUMN[dtype] if name == "dst" else 2
        together_bytes = 2 * size if name == "dst" else 8
    if f[f"{name}_offset"] % together_bytes:
        return Cause.MISALIGNED
    if opcode == _MX and (dims[0][0] != 1 or any(n != 1 for _, n in dims[1:])):
        return Cause.BAD_PATTERN
    if not _number(name, opcode, _elements(dims), cfg):
        return Cause.BAD_PATTERN
    if sums and opcode == Opcode.MULTIPLY_MOVING:
        inner = 1
        for step, n in dims:
            if n > 1:
                if step < inner:
                    return Cause.BAD_PATTERN
                inner = step * n
    ends = [step * (n - 1) for step, n in dims]
    lowest = f[f"{name}_offset"] + size * sum(e for e in ends if e < 0)
    highest = f[f"{name}_offset"] + size * sum(e for e in ends if e > 0) + size
    room = cfg.sbuf.partition_bytes if space == Space.SBUF else cfg.psum.partition_bytes
    return Cause.NONE if lowest >= 0 and highest <= room else Cause.OUT_OF_RANGE


def scales(f: Fields, cfg: Config) -> tuple[Cause, int]:
    """Whether the scales of an MX operand, a byte for each of its columns, lie in SBUF, and where they would."""
    at = f["imm0"] & 0xFFFFFF
    if f["opcode"] != _MX or (at % 4 == 0 and at + _elements(_dims(f, "dst")) <= cfg.sbuf.partition_bytes):
        return Cause.NONE, 0
    where = f["dst_partition_start"] * 2**18 + at
    return Cause.MISALIGNED if at % 4 else Cause.OUT_OF_RANGE, where | int(Space.SBUF) << 40


def columns(f: Fields, cfg: Config) -> tuple[Cause, int]:
    """The first of a, b and the accumulator's place that is not a column of SBUF, and its address."""
    source = "dst" if f["opcode"] == Opcode.MEMSET else "src0"
    for used, place, beside in (("column0", "imm0", source), ("column1", "imm1", source), ("store", "imm2", "dst")):
        at = f[place] & 0xFFFFFF
        if f[used] and (at % 4 or at + 4 > cfg.sbuf.partition_bytes):
            where = f[f"{beside}_partition_start"] * 2**18 + at
            return (Cause.MISALIGNED if at % 4 else Cause.OUT_OF_RANGE), where | int(Space.SBUF) << 40
    return Cause.NONE, 0


def together(f: Fields) -> Cause:
    """What operands must have in common."""
    opcode = f["opcode"]
    operands = tuple(name for name in OPERANDS.get(opcode, ()) if opcode >= 32 or name != "src1")
    if len(operands) < 2:
        return Cause.NONE
    sources = operands[:-1]
    if len(sources) == 2 and all(f[f"{name}_space"] == Space.PSUM for name in sources):
        return Cause.BAD_SPACE
    formats = [f[f"{name}_dtype"] for name in operands]
    if max(f["op0"], f["op1"]) >= 32 and (
        not all(d in _INTEGERS for d in formats) or len({_BYTES[d] for d in formats}) != 1
    ):
        return Cause.ILLEGAL_DTYPE
    if opcode in _BLOCKS and len(set(formats)) != 1:
        return Cause.ILLEGAL_DTYPE
    want = _elements(_dims(f, "dst"))
    if opcode == Opcode.TENSOR_TRANSPOSE:
        shape = f["src0_partition_count"], _elements(_dims(f, "src0"))
        return Cause.NONE if shape == (want, f["dst_partition_count"]) else Cause.BAD_PATTERN
    for name in sources:
        dims = _dims(f, name)
        if opcode == Opcode.TENSOR_REDUCE:
            dims = dims[f["axes"] + 1 :]
        if (opcode, name) not in _FREE_COUNTS and _elements(dims) != (4 * want if opcode == _MX else want):
            return Cause.BAD_PATTERN
        if opcode >= 32 and f[f"{name}_partition_count"] != f["dst_partition_count"]:
            return Cause.BAD_PATTERN
    return Cause.NONE


def elements(f: Fields, name: str) -> int:
    """Elements of an operand on a partition."""
    return _elements(_dims(f, name))


def first_byte(f: Fields, name: str) -> int:
    """Address of an operand's first byte, whether or not it exists."""
    offset = f[f"{name}_partition_start"] * 2**18 + f[f"{name}_offset"]
    return offset | f[f"{name}_space"] << 40
