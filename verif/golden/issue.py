"""Golden model of instruction checking: which cause, if any, halts a queue at an instruction.

Written from docs/isa.md with exact integers; shares encodings with the hardware, no code and no table.
"""

from collections.abc import Sequence

from rtl.contract.config import Config
from rtl.contract.isa import INSTRUCTION, Cause, Opcode, Queue, Update, Wait
from rtl.contract.memmap import Space, address

__all__ = ["check", "element_offsets"]

_QUEUES = {
    Opcode.NOP: tuple(Queue),
    Opcode.DMA_TRIGGER: tuple(Queue),
    Opcode.LOAD_STATIONARY: (Queue.TENSOR,),
    Opcode.MULTIPLY_MOVING: (Queue.TENSOR,),
    Opcode.TENSOR_COPY: (Queue.VECTOR,),
    Opcode.TENSOR_TENSOR: (Queue.VECTOR,),
    Opcode.TENSOR_SCALAR: (Queue.VECTOR,),
    Opcode.SCALAR_TENSOR_TENSOR: (Queue.VECTOR,),
    Opcode.TENSOR_REDUCE: (Queue.VECTOR,),
    Opcode.RECIPROCAL: (Queue.VECTOR,),
    Opcode.EXP: (Queue.VECTOR,),
}
_TWO_SOURCES = (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR)
_HEADER_OF = {
    Opcode.MULTIPLY_MOVING: ("accumulate",),
    Opcode.TENSOR_TENSOR: ("op0", "reverse0"),
    Opcode.TENSOR_SCALAR: ("op0", "op1", "reverse0", "reverse1", "column0", "column1"),
    Opcode.SCALAR_TENSOR_TENSOR: ("op0", "op1", "reverse0", "reverse1", "column0"),
    Opcode.TENSOR_REDUCE: ("op0", "axes", "negate"),
    Opcode.EXP: ("column0", "column1", "reduce", "store"),
}
_HEADER = (
    *("accumulate", "op0", "op1", "reverse0", "reverse1", "column0", "column1", "reduce", "store", "axes", "negate"),
    *("flags", "header_reserved", "header_pad"),
)
_OPERANDS = {
    Opcode.LOAD_STATIONARY: ("src0",),
    Opcode.MULTIPLY_MOVING: ("src0", "dst"),
    **{op: ("src0", "src1", "dst") if op in _TWO_SOURCES else ("src0", "dst") for op in _QUEUES if op >= 32},
}
_PATTERN_FIELDS = ("offset", "partition_start", "partition_count", "space", "dtype", "reserved") + tuple(
    f"{kind}{i}" for i in range(4) for kind in ("step", "count")
)
_BYTES = {0: 4, 1: 2, 2: 2, 4: 1, 5: 1, 6: 1, 9: 1, 10: 2, 11: 4, 12: 1, 13: 2, 14: 4}  # by dtype code
_INTEGERS = (9, 10, 11, 12, 13, 14)
_COPY_ELEMENTS = 131072


def _dims(f: dict[str, int], operand: str) -> list[tuple[int, int]]:
    return [(f[f"{operand}_step{i}"], f[f"{operand}_count{i}"]) for i in range(4)]


def element_offsets(f: dict[str, int], operand: str) -> list[int]:
    """Byte offsets in the partition, in the order of iteration (index 0 innermost)."""
    size = _BYTES[f[f"{operand}_dtype"]]
    offsets = [0]
    for step, count in _dims(f, operand):
        offsets = [inner + i * step for i in range(count) for inner in offsets]
    return [f[f"{operand}_offset"] + o * size for o in offsets]


def _elements(dims: list[tuple[int, int]]) -> int:
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


def _operand(f: dict[str, int], name: str, opcode: Opcode, cfg: Config) -> Cause:
    """The first rule an operand breaks."""
    space, dtype = f[f"{name}_space"], f[f"{name}_dtype"]
    start, count = f[f"{name}_partition_start"], f[f"{name}_partition_count"]
    dims = _dims(f, name)
    sums = opcode == Opcode.MULTIPLY_MOVING and name == "dst"
    if sums:
        allowed: dict[Space, tuple[int, ...]] = {Space.PSUM: (0,)}
        partitions = cfg.tensor.cols
    elif opcode >= Opcode.TENSOR_COPY:
        allowed = {Space.SBUF: tuple(_BYTES)}
        if name != "dst":
            allowed[Space.PSUM] = (0,)
        partitions = cfg.partitions
    else:
        allowed = {Space.SBUF: (1, 2)}
        partitions = cfg.tensor.rows
    if space not in allowed:
        return Cause.BAD_SPACE
    if dtype not in allowed[Space(space)]:
        return Cause.ILLEGAL_DTYPE
    if start not in _starts(count, cfg.partitions) or start + count > partitions or (sums and start):
        return Cause.BAD_PARTITION
    size = _BYTES[dtype]
    if f[f"{name}_offset"] % size:
        return Cause.MISALIGNED
    limit = {Opcode.LOAD_STATIONARY: cfg.tensor.cols, Opcode.MULTIPLY_MOVING: cfg.tensor.moving_max}
    if not 1 <= _elements(dims) <= limit.get(opcode, _COPY_ELEMENTS):
        return Cause.BAD_PATTERN
    if sums:
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


def check(word: int, cfg: Config, queue: int, left: Sequence[int] | None = None) -> tuple[Cause, int]:
    """Cause and address of the fault of one instruction word in `queue`; (NONE, 0) if it may run.

    `left`: descriptors of each ring not yet released, if the caller keeps count; None skips that rule.
    The address of an operand's fault is that of its first byte, of a BAD_SEMAPHORE the semaphore's
    byte address in its space, else 0; the core part of the address is 0.
    """
    f = INSTRUCTION.unpack(word)
    try:
        opcode = Opcode(f["opcode"])
    except ValueError:
        return Cause.ILLEGAL_OPCODE, 0
    if queue not in _QUEUES.get(opcode, ()):
        return Cause.ILLEGAL_OPCODE, 0
    operands = _OPERANDS.get(opcode, ())
    zero = [name for name in _HEADER if name not in _HEADER_OF.get(opcode, ())]
    zero += [f"{name}_reserved" for name in operands]
    zero += [f"{n}_{x}" for n in ("src0", "src1", "dst") if n not in operands for x in _PATTERN_FIELDS]
    zero += [f"imm{i}" for i in range(3) if not _immediate(f, opcode, i)]
    if opcode == Opcode.EXP and f["reduce"] != 3:
        zero.append("column1")
    kinds = f["wait0"], f["wait1"], f["update"]
    if any(f[name] for name in zero) or max(kinds) > max(*Wait, *Update):
        return Cause.ILLEGAL_OPCODE, 0
    for kind, name in zip(kinds, ("wait0", "wait1", "update"), strict=True):
        index = f[f"{name}_semaphore"]
        if kind and index >= cfg.issue.semaphores:
            return Cause.BAD_SEMAPHORE, address(Space.SEMAPHORES, 4 * index)
    if opcode == Opcode.DMA_TRIGGER:
        ring, count = f["imm0"], f["imm1"]
        if ring >= cfg.dma.rings or not 1 <= count < 1 << 32:
            return Cause.BAD_RING, 0
        if left is not None and count > left[ring]:
            return Cause.BAD_RING, 0
    if not _operators(f, opcode):
        return Cause.BAD_OPERATOR, 0
    for name in operands:
        cause = _operand(f, name, opcode, cfg)
        if cause:
            return cause, _first_byte(f, name)
    for used, place, beside in (("column0", "imm0", "src0"), ("column1", "imm1", "src0"), ("store", "imm2", "dst")):
        at = f[place] & 0xFFFFFF
        if f[used] and (at % 4 or at + 4 > cfg.sbuf.partition_bytes):
            where = f[f"{beside}_partition_start"] * 2**18 + at
            return (Cause.MISALIGNED if at % 4 else Cause.OUT_OF_RANGE), where | int(Space.SBUF) << 40
    cause = _together(f, opcode, operands)
    return cause, _first_byte(f, "dst") if cause else 0


def _immediate(f: dict[str, int], opcode: Opcode, number: int) -> bool:
    """Whether an immediate may hold what it holds."""
    value = f[f"imm{number}"]
    if opcode == Opcode.DMA_TRIGGER:
        return number < 2 or value == 0
    if opcode == Opcode.EXP and number == 2:
        return value < 1 << (24 if f["store"] else 0)
    if opcode == Opcode.EXP and number == 1 and f["reduce"] != 3:
        return value == 0
    if number < 2 and f"column{number}" in _HEADER_OF.get(opcode, ()):
        return value < 1 << (24 if f[f"column{number}"] else 32)
    return value == 0


def _operators(f: dict[str, int], opcode: Opcode) -> bool:
    """Whether the operators exist and go together."""
    if opcode == Opcode.TENSOR_REDUCE:
        return f["op0"] in (1, 4, 5, 6, 7)
    if opcode == Opcode.EXP:
        return not (f["store"] and f["reduce"] == 0)
    ops = [f[name] for name in ("op0", "op1") if name in _HEADER_OF.get(opcode, ())]
    if any(not (op <= 19 or 32 <= op <= 37) for op in ops):
        return False
    return not (len(ops) == 2 and max(ops) >= 32 and any(1 <= op <= 19 for op in ops))


def _together(f: dict[str, int], opcode: Opcode, operands: Sequence[str]) -> Cause:
    """What operands must have in common."""
    if len(operands) < 2:
        return Cause.NONE
    sources = operands[:-1]
    if len(sources) == 2 and all(f[f"{name}_space"] == Space.PSUM for name in sources):
        return Cause.BAD_SPACE
    if max(f["op0"], f["op1"]) >= 32:
        formats = [f[f"{name}_dtype"] for name in operands]
        if not all(d in _INTEGERS for d in formats) or len({_BYTES[d] for d in formats}) != 1:
            return Cause.ILLEGAL_DTYPE
    want = _elements(_dims(f, "dst"))
    for name in sources:
        dims = _dims(f, name)
        if opcode == Opcode.TENSOR_REDUCE:
            dims = dims[f["axes"] + 1 :]
        if _elements(dims) != want:
            return Cause.BAD_PATTERN
        if opcode >= Opcode.TENSOR_COPY and f[f"{name}_partition_count"] != f["dst_partition_count"]:
            return Cause.BAD_PATTERN
    return Cause.NONE


def _first_byte(f: dict[str, int], name: str) -> int:
    """Address of an operand's first byte, whether or not it exists."""
    offset = f[f"{name}_partition_start"] * 2**18 + f[f"{name}_offset"]
    return offset | f[f"{name}_space"] << 40
