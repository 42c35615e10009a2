"""Random instruction words: legal ones, and ones with something wrong."""

import numpy as np

from rtl.contract.config import Config
from rtl.contract.isa import INSTRUCTION, Opcode, Queue
from rtl.contract.memmap import Space

__all__ = ["dims_of", "legal", "pack", "spoiled"]

Fields = dict[str, int]
_OPCODES = {Queue.TENSOR: (16, 17), Queue.VECTOR: (32, 33, 34, 35, 36, 43, 50)}
_SPOIL_DTYPES = (0, 1, 2, 3, 4, 9, 15)
_BYTES = {0: 4, 1: 2, 2: 2, 4: 1, 5: 1, 6: 1, 9: 1, 10: 2, 11: 4, 12: 1, 13: 2, 14: 4}
_WHOLE = {1: (9, 12), 2: (10, 13), 4: (11, 14)}
_REDUCTIONS = (1, 4, 5, 6, 7)


def pack(fields: Fields) -> int:
    """The word of these fields; values are cut to their width."""
    cut = {}
    for f in INSTRUCTION:
        if f.name in fields:
            value = int(fields[f.name]) & ((1 << f.width) - 1)
            cut[f.name] = value - (1 << f.width) if f.signed and value >> (f.width - 1) else value
    return INSTRUCTION.pack(cut)


def dims_of(rng: np.random.Generator, elements: int) -> list[int]:
    """Four counts whose product is `elements`."""
    counts = [1, 1, 1, 1]
    rest, factor = elements, 2
    while rest > 1:
        while rest % factor:
            factor += 1
        counts[int(rng.integers(4))] *= factor
        rest //= factor
    return counts


def _start(rng: np.random.Generator, count: int, partitions: int) -> int:
    quarter = partitions // 4
    if count <= quarter:
        return int(rng.integers(4)) * quarter
    return int(rng.integers(2)) * 2 * quarter if count <= 2 * quarter else 0


def _pattern(
    rng: np.random.Generator, cfg: Config, space: int, dtype: int, parts: int, counts: list[int], ascending: bool,
    gaps: bool = True,
) -> Fields:  # fmt: skip
    size = _BYTES[dtype]
    room = (cfg.sbuf.partition_bytes if space == Space.SBUF else cfg.psum.partition_bytes) // size
    f: Fields = {"space": space, "dtype": dtype, "partition_count": parts}
    f["partition_start"] = _start(rng, parts, cfg.partitions)
    inner = 1
    budget = room - 1
    low = high = 0
    for i, count in enumerate(counts):
        if count == 1:
            step = int(rng.integers(-40, 40))
        elif ascending:
            step = inner + (int(rng.integers(0, 4)) if gaps else 0)
            inner = step * count
        else:
            most = max(0, budget) // (count - 1) // 2
            step = int(rng.integers(-min(most, 50), min(most, 50) + 1))
        end = step * (count - 1)
        budget -= abs(end)
        low += min(end, 0)
        high += max(end, 0)
        f[f"step{i}"], f[f"count{i}"] = step, count
    slack = room - 1 - high + low
    if slack < 0:
        return _pattern(rng, cfg, space, dtype, parts, counts, ascending, gaps=False)
    kind = rng.random()
    at = 0 if kind < 0.2 else slack if kind < 0.4 else int(rng.integers(0, slack + 1))
    f["offset"] = (at - low) * size
    return f


def legal(rng: np.random.Generator, cfg: Config, queue: int, opcode: int | None = None) -> Fields:
    """Fields of an instruction that the queue executes."""
    if opcode is None:
        opcode = int(rng.choice([0, 1, *(_OPCODES.get(Queue(queue), (0,)) * 3)]))
    f: Fields = {"opcode": opcode}
    if opcode == Opcode.DMA_TRIGGER:
        f["imm0"], f["imm1"] = int(rng.integers(cfg.dma.rings)), int(rng.integers(1, 5))
    if opcode < 16:
        return f
    if opcode >= Opcode.TENSOR_COPY:
        return f | _elementwise(rng, cfg, opcode)
    copy = False
    limit = {16: cfg.tensor.cols, 17: cfg.tensor.moving_max}[opcode]
    elements = limit if rng.random() < 0.2 else int(rng.integers(1, limit + 1))
    rows = cfg.partitions if copy else cfg.tensor.rows
    parts = int(rng.integers(1, rows + 1))
    space = int(rng.integers(1, 3)) if copy else Space.SBUF
    if space == Space.PSUM:
        elements = min(elements, cfg.psum.partition_bytes // 4)
    dtype = int(rng.integers(1, 3))
    src = _pattern(rng, cfg, space, dtype, parts, dims_of(rng, elements), False)
    if not copy and src["partition_start"] + parts > cfg.tensor.rows:
        src["partition_start"] = 0
    f |= {f"src0_{k}": v for k, v in src.items()}
    if opcode == Opcode.MULTIPLY_MOVING:
        f["accumulate"] = int(rng.integers(2))
        dst = _pattern(rng, cfg, Space.PSUM, 0, int(rng.integers(1, cfg.tensor.cols + 1)), dims_of(rng, elements), True)
        dst["partition_start"] = 0
        f |= {f"dst_{k}": v for k, v in dst.items()}
    return f


def _elementwise(rng: np.random.Generator, cfg: Config, opcode: int) -> Fields:
    """Fields of an instruction of the vector engine."""
    two = opcode in (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR)
    elements = 300 if rng.random() < 0.2 else int(rng.integers(1, 301))
    parts = int(rng.integers(1, cfg.partitions + 1))
    f: Fields = {}
    if two or opcode == Opcode.TENSOR_SCALAR:
        bits = rng.random() < 0.3
        ops = range(32, 38) if bits else range(20)
        f["op0"], f["reverse0"] = int(rng.choice(ops)), int(rng.integers(2))
        if opcode != Opcode.TENSOR_TENSOR:
            f["op1"], f["reverse1"] = int(rng.choice([0, *ops])), int(rng.integers(2))
    else:
        bits = False
    whole = _WHOLE[int(rng.choice([1, 2, 4]))]
    formats = [int(rng.choice(whole if bits else list(_BYTES))) for _ in range(3)]
    in_psum = int(rng.integers(0, 6))
    counts = dims_of(rng, elements)
    spaces = [Space.SBUF, Space.SBUF, Space.SBUF]
    if in_psum < 1 + two and not bits and elements * 4 <= cfg.psum.partition_bytes:
        spaces[in_psum], formats[in_psum] = Space.PSUM, 0
    results = counts
    if opcode == Opcode.TENSOR_REDUCE:
        f["op0"], f["axes"] = int(rng.choice(_REDUCTIONS)), int(rng.integers(4))
        f["negate"] = int(rng.integers(2))
        results = dims_of(rng, int(np.prod(counts[f["axes"] + 1 :])))
    for name, space, dtype, shape in (
        ("src0", spaces[0], formats[0], counts),
        *([("src1", spaces[1], formats[1], dims_of(rng, elements))] if two else []),
        ("dst", spaces[2], formats[2], results),
    ):
        made = _pattern(rng, cfg, space, dtype, parts, shape, False)
        f |= {f"{name}_{k}": v for k, v in made.items()}
    if opcode == Opcode.EXP:
        f["reduce"] = int(rng.integers(4))
        f["store"] = int(f["reduce"] > 0 and rng.integers(2))
        f["imm2"] = 4 * int(rng.integers(cfg.sbuf.partition_bytes // 4)) * f["store"]
    for number in {Opcode.TENSOR_SCALAR: (0, 1), Opcode.SCALAR_TENSOR_TENSOR: (0,), Opcode.EXP: (0, 1)}.get(opcode, ()):
        if opcode == Opcode.EXP and number == 1 and f["reduce"] != 3:
            continue
        column = int(rng.integers(2))
        place = 4 * int(rng.integers(cfg.sbuf.partition_bytes // 4))
        f[f"column{number}"], f[f"imm{number}"] = column, place if column else int(rng.integers(1 << 32))
    return f


def spoiled(rng: np.random.Generator, cfg: Config, queue: int) -> Fields:
    """A legal instruction with one or two fields changed; it may still be legal."""
    f = legal(rng, cfg, queue)
    for _ in range(int(rng.integers(1, 3))):
        operands = [n for n in ("src0", "src1", "dst") if f"{n}_count3" in f and f"{n}_offset" in f]
        kind = int(rng.integers(15))
        name = operands[int(rng.integers(len(operands)))] if operands else ""
        if kind == 0:
            f["opcode"] = int(rng.choice([0, 1, 2, 15, 16, 17, 18, 32, 33, 36, 37, 50, 255]))
        elif kind == 1:
            field = list(INSTRUCTION)[int(rng.integers(len(INSTRUCTION.fields)))]
            f[field.name] = f.get(field.name, 0) ^ 1 << int(rng.integers(field.width))
        elif kind == 2:
            which = ("wait0", "wait1", "update")[int(rng.integers(3))]
            f[which] = int(rng.integers(4))
            f[f"{which}_semaphore"] = int(rng.choice([0, cfg.issue.semaphores - 1, cfg.issue.semaphores, 4095]))
        elif not operands:
            f["imm0"] = int(rng.choice([0, cfg.dma.rings - 1, cfg.dma.rings, 1 << 40]))
            f["imm1"] = int(rng.choice([0, 1, (1 << 32) - 1, 1 << 32]))
        elif kind == 12:
            f[("op0", "op1")[int(rng.integers(2))]] = int(rng.choice([0, 1, 19, 20, 31, 32, 37, 38, 63]))
        elif kind == 13:
            number = int(rng.integers(3))
            f[f"imm{number}"] = f.get(f"imm{number}", 0) + int(rng.choice([-4, 1, 2, 4, 1 << 13, 1 << 24, 1 << 32]))
        elif kind == 14:
            which = ("column0", "column1", "store", "reduce", "axes")[int(rng.integers(5))]
            f[which] = f.get(which, 0) ^ 1
        elif kind == 3:
            f[f"{name}_dtype"] = int(rng.choice(_SPOIL_DTYPES))
        elif kind == 4:
            f[f"{name}_space"] = int(rng.integers(6))
        elif kind == 5:
            field = f"{name}_partition_start"
            f[field] = f.get(field, 0) + int(rng.choice([-1, 1, cfg.partitions // 4]))
        elif kind == 6:
            f[f"{name}_partition_count"] = int(rng.choice([0, 1, cfg.partitions, cfg.partitions + 1, 255]))
        elif kind == 7:
            f[f"{name}_offset"] += int(rng.choice([-4, -2, -1, 1, 2, 4]))
        elif kind == 8:
            f[f"{name}_count{int(rng.integers(4))}"] = int(rng.choice([0, 1, 2, 65535]))
        elif kind == 9:
            f[f"{name}_step{int(rng.integers(4))}"] = int(rng.choice([-32768, -1, 0, 1, 32767]))
        elif kind == 10:
            field = f"{name}_step{int(rng.integers(4))}"
            f[field] = f.get(field, 0) + int(rng.choice([-1, 1]))
        else:
            field = f"{name}_count{int(rng.integers(4))}"
            f[field] = f.get(field, 0) + 1
    return f
