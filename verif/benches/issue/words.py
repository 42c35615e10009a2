"""Random instruction words: legal ones, and ones with something wrong."""

import numpy as np

from rtl.contract.config import Config
from rtl.contract.isa import COPY_AT, COPY_QUEUES, INSTRUCTION, Opcode, Queue, Rounding
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from verif.benches.issue.elementwise import SCALAR_OPCODES, VECTOR_OPCODES, elementwise
from verif.benches.issue.shapes import Fields, dims_of, pattern
from verif.golden.groups import (
    RAW_FORMATS,
    WeightKinds,
    bytes_of,
    formats_of,
    kept_of,
    moving_bytes_of,
    scale_format_of,
    scale_rows_of,
    scaled,
)

__all__ = ["Fields", "copied", "legal", "opcodes_of", "pack", "spoiled"]

_OPCODES = {
    Queue.TENSOR: (16, 17, 18),
    Queue.VECTOR: VECTOR_OPCODES,
    Queue.SCALAR: SCALAR_OPCODES,
    Queue.GPSIMD: (96, 97, 98),
}
_UINT32 = 14
_COPY_BITS = INSTRUCTION.offset("imm2") - COPY_AT
_SPOIL_DTYPES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15)
_TRIES = 300


def opcodes_of(queue: int) -> tuple[int, ...]:
    """Opcodes of the queue's engine."""
    return _OPCODES.get(Queue(queue), ())


def copied(descriptor: int) -> Fields:
    """Fields of a DMA_COPY that stand where its descriptor does."""
    fields = INSTRUCTION.unpack(descriptor << COPY_AT)
    return {f.name: fields[f.name] for f in INSTRUCTION if COPY_AT <= INSTRUCTION.offset(f.name) < COPY_AT + _COPY_BITS}


def pack(fields: Fields) -> int:
    """The word of these fields; values are cut to their width."""
    cut = {}
    for f in INSTRUCTION:
        if f.name in fields:
            value = int(fields[f.name]) & ((1 << f.width) - 1)
            cut[f.name] = value - (1 << f.width) if f.signed and value >> (f.width - 1) else value
    return INSTRUCTION.pack(cut)


def legal(
    rng: np.random.Generator,
    cfg: Config,
    queue: int,
    opcode: int | None = None,
    loaded: int = 0,
    weights: WeightKinds | None = None,
) -> Fields:
    """Fields of an instruction that the queue executes; `loaded`: functions of its table, a bit each. `weights`:
    what its loads left; if no MULTIPLY_MOVING is found that goes with them, it is a LOAD_STATIONARY, and while a load
    waits for a matmul it is one of these instead of a TENSOR_TRANSPOSE."""
    if opcode is None:
        local = [0, 1, *[3] * (queue in COPY_QUEUES)]
        opcode = int(rng.choice([*local, *(opcodes_of(queue) or (0,)) * 3]))
    f: Fields = {"opcode": opcode}
    if opcode == Opcode.DMA_TRIGGER:
        f["imm0"], f["imm1"] = int(rng.integers(cfg.dma.rings)), int(rng.integers(1, 5))
    if opcode == Opcode.DMA_COPY:
        f |= copied(int.from_bytes(rng.bytes(_COPY_BITS // 8), "little"))
    if opcode < 16:
        return f
    if opcode >= 96:
        return f | _programmable(rng, cfg, opcode)
    if opcode >= 32:
        return f | elementwise(rng, cfg, opcode, loaded)
    for _ in range(_TRIES):
        made = _matmul(rng, cfg, opcode, weights)
        if made is not None:
            return f | made
    if opcode == Opcode.TENSOR_TRANSPOSE:
        return legal(rng, cfg, queue, Opcode.MULTIPLY_MOVING, loaded, weights)
    return legal(rng, cfg, queue, Opcode.LOAD_STATIONARY)


def _programmable(rng: np.random.Generator, cfg: Config, opcode: int) -> Fields:
    """Fields of an instruction of the GPSIMD engine; a program's operands are any bits."""
    numbers = {f"imm{i}": int(rng.integers(1 << 64, dtype=np.uint64)) for i in range(3)}
    if opcode == Opcode.GP_RUN:
        widths = {
            f.name: f.width for f in INSTRUCTION if f.name.startswith(("src", "dst")) and "reserved" not in f.name
        }
        return numbers | {name: int(rng.integers(1 << width)) for name, width in widths.items()}
    name, load = ("src0", True) if opcode == Opcode.GP_LOAD else ("dst", False)
    partitions = int(rng.integers(1, cfg.partitions + 1))
    made = pattern(rng, cfg, Space.SBUF, _UINT32, partitions, dims_of(rng, int(rng.integers(1, 200))), False)
    f = {f"{name}_{k}": v for k, v in made.items()} | {"imm0": numbers["imm0"] >> 24}
    return f | {"imm1": numbers["imm1"] >> 32} if load else f


def _goes(f: Fields, opcode: int, weights: WeightKinds) -> bool:
    """Whether an instruction goes with what loads left, as far as its fields say yet."""
    if opcode == Opcode.TENSOR_TRANSPOSE:
        return weights.taken(f)
    return opcode == Opcode.LOAD_STATIONARY or weights.agree({"dst_partition_count": 1} | f)


def _matmul(rng: np.random.Generator, cfg: Config, opcode: int, weights: WeightKinds | None) -> Fields | None:
    """Fields of an instruction of the tensor engine; None if they do not go with what loads left."""
    limit = {16: cfg.tensor.cols, 17: cfg.tensor.moving_max, 18: cfg.tensor.cols}[opcode]
    elements = limit if rng.random() < 0.2 else int(rng.integers(1, limit + 1))
    kind = int(rng.choice([k for k in range(8) if formats_of(k, cfg)]))
    kind = int(Kind.RAW) if opcode == Opcode.TENSOR_TRANSPOSE else kind
    dtype = int(rng.choice(RAW_FORMATS if kind == Kind.RAW else formats_of(kind, cfg)))
    sparse = kind == Kind.SPARSE
    sparsity = int(rng.integers(7)) if sparse else 0
    each = kept_of(sparsity) if sparse else scale_rows_of(kind)
    tile = int(rng.integers(cfg.tensor.groups.bit_length()))
    parts = each * int(rng.integers(1, (cfg.tensor.rows >> tile) // each + 1))
    size = moving_bytes_of(sparsity) if sparse and opcode == Opcode.MULTIPLY_MOVING else bytes_of(kind, dtype)
    src = pattern(rng, cfg, Space.SBUF, dtype, parts, dims_of(rng, elements), False, size=size)
    if src["partition_start"] + parts > cfg.tensor.rows or src["partition_start"] % (4 if sparse else each):
        src["partition_start"] = 0
    f = {"kind": kind, "tile": tile, "sparsity": sparsity} | {f"src0_{k}": v for k, v in src.items()}
    if weights is not None and not _goes(f, opcode, weights):
        return None  # before the rest of it is drawn: most are such
    if dtype == 7:
        f |= {f"imm{i}": int(rng.integers(1 << 63)) for i in (0, 1)}
    if scaled(kind):
        block = min(32, cfg.partitions)
        scales = pattern(rng, cfg, Space.SBUF, scale_format_of(kind), 1, dims_of(rng, elements), False)
        slot = int(rng.integers(each // 2)) * (block // each)
        scales |= {"partition_start": src["partition_start"] // block * block + slot, "partition_count": block // each}
        f |= {f"src1_{k}": v for k, v in scales.items()}
    if sparse and opcode == Opcode.LOAD_STATIONARY:
        tags = pattern(rng, cfg, Space.SBUF, 13, parts, dims_of(rng, -(-elements // 4)), False)
        tags["partition_start"] = src["partition_start"]
        f |= {f"src1_{k}": v for k, v in tags.items()}
    if opcode == Opcode.TENSOR_TRANSPOSE:
        dst = pattern(rng, cfg, Space.PSUM, 0, elements, dims_of(rng, parts), False) | {"partition_start": 0}
        f |= {f"dst_{k}": v for k, v in dst.items()}
    if opcode == Opcode.MULTIPLY_MOVING:
        f["accumulate"] = int(rng.integers(2))
        f["rounding"] = int(rng.integers(3))
        if f["rounding"] == Rounding.STOCHASTIC:
            f["imm2"] = int(rng.integers(1 << 32))
        dst = pattern(rng, cfg, Space.PSUM, 0, int(rng.integers(1, cfg.tensor.cols + 1)), dims_of(rng, elements), True)
        dst["partition_start"] = 0
        f |= {f"dst_{k}": v for k, v in dst.items()}
    return f if weights is None or _goes(f, opcode, weights) else None


def spoiled(
    rng: np.random.Generator, cfg: Config, queue: int, loaded: int = 0, weights: WeightKinds | None = None
) -> Fields:
    """A legal instruction with one or two fields changed; it may still be legal."""
    f = legal(rng, cfg, queue, loaded=loaded, weights=weights)
    for _ in range(int(rng.integers(1, 3))):
        operands = [n for n in ("src0", "src1", "dst") if f"{n}_count3" in f and f"{n}_offset" in f]
        kind = int(rng.integers(19 if "kind" in f else 15))
        name = operands[int(rng.integers(len(operands)))] if operands else ""
        if kind == 0:
            f["opcode"] = int(
                rng.choice([0, 1, 2, 3, 15, 16, 17, 18, 31, *range(32, 53), 64, 65, 66, *range(95, 100), 255])
            )
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
        elif kind == 15:
            f["kind"] = int(rng.integers(8))
        elif kind == 16:
            f["tile"] = int(rng.integers(4))
        elif kind == 17:
            f["rounding"] = int(rng.integers(4))
        elif kind == 18:
            f["sparsity"] = int(rng.integers(8))
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
