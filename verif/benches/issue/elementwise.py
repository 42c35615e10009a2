"""Random legal instructions of the vector and the scalar queue."""

import numpy as np

from rtl.contract.config import Config
from rtl.contract.isa import Opcode
from rtl.contract.memmap import Space
from verif.benches.issue.shapes import BYTES, Fields, dims_of, pattern

__all__ = ["SCALAR_OPCODES", "VECTOR_OPCODES", "elementwise"]

VECTOR_OPCODES = tuple(range(32, 52))
SCALAR_OPCODES = (64, 65, 66, 67)
_E8M0 = 8  # only scales of the array have it
_TWO_SOURCES = (33, 35, 37, 38, 39, 46, 47)
_SBUF_ONLY = (41, 42, 45, 46, 47, 48, 49)
_CHAINS = (34, 35, 37, 64, 67)
_COLUMNS = dict.fromkeys((34, 40, 50, 64, 67), (0, 1)) | dict.fromkeys((35, 37, 38, 44, 47), (0,))
_SUMS = (40, 50, 64)
_TF32 = 3
_WHOLE = {1: (9, 12), 2: (10, 13), 4: (11, 14)}
_REDUCTIONS = (1, 4, 5, 6, 7)
_PAIRS = ((3, 1), (3, 2), (3, 0), (1, 0), (2, 0), (0, 0))
_DIRECT = tuple(range(7))
_SLOPED = (4, 5)
_LOAD_REDUCE = 3


def elementwise(rng: np.random.Generator, cfg: Config, opcode: int, loaded: int = 0) -> Fields:
    """Fields of an instruction with this opcode; functions are those without a table and those in `loaded`."""
    if opcode == Opcode.LOAD_TABLE:
        counts = dims_of(rng, 2 * int(rng.integers(1, 200)))
        made = pattern(rng, cfg, Space.SBUF, 14, int(rng.integers(1, cfg.partitions + 1)), counts, False)
        return {"imm0": int(rng.integers(1 << 16)) << 16} | {f"src0_{k}": v for k, v in made.items()}
    if opcode == Opcode.QUANTIZE_MX:
        return _quantize(rng, cfg)
    f, bits = _operators(rng, opcode)
    f |= _operands(rng, cfg, opcode, bits, f.get("axes", 0))
    if opcode in _SUMS:
        f["reduce"] = int(rng.integers(3 if opcode == Opcode.RANGE_SELECT or f.get("op1") else 4))
        f["store"] = int(f["reduce"] > 0 and rng.integers(2))
        f["imm2"] = _place(rng, cfg) * f["store"]
    for number in _COLUMNS.get(opcode, ()):
        if opcode == Opcode.EXP and number == 1 and f["reduce"] != _LOAD_REDUCE:
            continue
        column = int(rng.integers(2))
        f[f"column{number}"], f[f"imm{number}"] = column, _place(rng, cfg) if column else int(rng.integers(1 << 32))
    if opcode == Opcode.RANGE_SELECT:
        f["imm1"] |= int(rng.integers(1 << 32)) << 32
    if opcode == Opcode.SHUFFLE:
        block = min(32, cfg.partitions)
        mask = sum(int(rng.choice([*range(block), 32])) << 6 * j for j in range(block))
        f |= {f"imm{i}": mask >> 64 * i & (1 << 64) - 1 for i in range(3)}
    if opcode == Opcode.ACTIVATION:
        function = int(rng.choice([*_DIRECT, *(i for i in range(16, 32) if loaded >> i & 1)]))
        f["imm2"] |= function << 32 | (int(rng.choice(_REDUCTIONS)) << 40 if f["reduce"] else 0)
        f["imm0"] |= int(rng.integers(1 << 32)) << 32 if function in _SLOPED else 0
    return f


def _quantize(rng: np.random.Generator, cfg: Config) -> Fields:
    """Rows of neighbours on blocks of 8 partitions; elements, columns of them and scales often at an end of SBUF."""
    room = cfg.sbuf.partition_bytes
    columns = 4 * int(rng.choice([1, int(rng.integers(1, 100)), room // 32]))
    parts = 8 * int(rng.integers(1, cfg.partitions // 8 + 1))
    f: Fields = {}
    for name, dtypes, count, size, step in (("src0", (1, 2), 4 * columns, 2, 8), ("dst", (4, 6, 7), columns, 4, 8)):
        dtype = int(rng.choice(dtypes))
        size, step = (2, 4) if dtype == 7 else (size, step)
        made = pattern(rng, cfg, Space.SBUF, dtype if dtype != 7 else 1, parts, [count, 1, 1, 1], False)
        while made["partition_start"] % 8:
            made = pattern(rng, cfg, Space.SBUF, 1, parts, [count, 1, 1, 1], False)
        last = (room - count * size) // step * step
        made |= {
            "step0": 1,
            "dtype": dtype,
            "offset": int(rng.choice([0, last, int(rng.integers(last + 1))])) // step * step,
        }
        f |= {f"{name}_{k}": v for k, v in made.items()}
    last = (room - columns) // 4
    place = 4 * int(rng.choice([0, last, int(rng.integers(last + 1))]))
    return f | {"imm0": place | int(rng.integers(8)) << 24}


def _place(rng: np.random.Generator, cfg: Config) -> int:
    """Of a column of SBUF; the last one often."""
    last = cfg.sbuf.partition_bytes // 4 - 1
    return 4 * int(rng.choice([last, int(rng.integers(last))]))


def _operators(rng: np.random.Generator, opcode: int) -> tuple[Fields, bool]:
    """Operators and what belongs to them; whether they work on bits."""
    f: Fields = {}
    bits = opcode in (33, 34, 35) and rng.random() < 0.3
    ops = {37: range(1, 6), 40: range(8, 14)}.get(opcode, range(32, 38) if bits else range(20))
    if opcode in (33, 40, *_CHAINS):
        f["op0"] = int(rng.choice(ops))
    if opcode in (40, *_CHAINS):
        f["op1"] = int(rng.choice([0, *ops] if bits else ops))
    if opcode == Opcode.SCALAR_AFFINE:
        f["op0"], f["op1"] = int(rng.integers(4)), int(rng.integers(3))
    if opcode == Opcode.ACTIVATION:
        f["op0"], f["op1"] = _PAIRS[int(rng.integers(len(_PAIRS)))]
    if opcode in (33, *_CHAINS):
        f["reverse0"] = int(rng.integers(2))
    if opcode in _CHAINS:
        f["reverse1"] = int(rng.integers(2))
    if opcode == Opcode.TENSOR_REDUCE:
        f = {"op0": int(rng.choice(_REDUCTIONS)), "axes": int(rng.integers(4)), "negate": int(rng.integers(2))}
    return f, bits


def _elements(rng: np.random.Generator, cfg: Config, opcode: int) -> int:
    """How many a partition of src0, of dst in MEMSET."""
    n = 300 if rng.random() < 0.2 else int(rng.integers(1, 301))
    if opcode == Opcode.BN_STATS:
        return int(rng.choice([n, 512]))
    if opcode == Opcode.BN_AGGR:
        return 3 * n
    if opcode in (45, 46, 47):
        return int(rng.choice([n + 7, 8, 16384]))
    return n * min(32, cfg.partitions) if opcode == Opcode.TRANSPOSE else n


def _operands(rng: np.random.Generator, cfg: Config, opcode: int, bits: bool, axes: int) -> Fields:
    """The patterns."""
    moves = opcode in (Opcode.TRANSPOSE, Opcode.SHUFFLE)
    whole = _WHOLE[int(rng.choice([1, 2, 4]))] if bits else tuple(code for code in BYTES if code != _E8M0)
    formats = {name: int(rng.choice(whole)) for name in ("src0", "src1", "dst")}
    spaces = dict.fromkeys(formats, int(Space.SBUF))
    for name in ("src0", "src1"):
        formats[name] *= formats[name] != _TF32
    two = opcode in _TWO_SOURCES
    if moves:
        formats["dst"] = formats["src0"]
    elif opcode == Opcode.FIND_INDEX8:
        formats["dst"] = int(rng.integers(13, 15))
    if not bits and (not moves or formats["src0"] == 0):
        in_psum = ("src0", "src1", "")[int(rng.integers(3))]
        if in_psum:
            spaces[in_psum], formats[in_psum] = int(Space.PSUM), 0
        if opcode not in _SBUF_ONLY and rng.integers(3) == 0:
            spaces["dst"], formats["dst"] = int(Space.PSUM), 0
    block = min(32, cfg.partitions)
    parts = int(rng.integers(1, cfg.partitions + 1))
    parts = block * int(rng.integers(1, cfg.partitions // block + 1)) if moves else parts
    n = _elements(rng, cfg, opcode)
    counts = dims_of(rng, n)
    results = {41: 6, 42: 2, 45: 8, 46: 8, 36: int(np.prod(counts[axes + 1 :]))}.get(opcode, n)
    shapes = {"src0": counts, "src1": dims_of(rng, 8 if opcode in (46, 47) else n), "dst": dims_of(rng, results)}
    f: Fields = {}
    for name, shape in shapes.items():
        if name == "src1" and not two or name == "src0" and opcode == Opcode.MEMSET:
            continue
        made = pattern(rng, cfg, spaces[name], formats[name], parts, shape, False)
        while moves and made["partition_start"] % block:
            made = pattern(rng, cfg, spaces[name], formats[name], parts, shape, False)
        f |= {f"{name}_{k}": v for k, v in made.items()}
    return f
