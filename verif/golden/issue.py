"""Golden model of instruction checking: which cause, if any, halts a queue at an instruction.

Written from docs/isa.md with exact integers; shares encodings with the hardware, no code and no table.
"""

from collections.abc import Mapping, Sequence

from rtl.contract.config import Config
from rtl.contract.isa import INSTRUCTION, Cause, Opcode, Queue, Update, Wait
from rtl.contract.memmap import Space, address
from verif.golden.groups import WeightKinds, scaled
from verif.golden.issue_operands import OPERANDS, columns, elements, first_byte, operand, scales, together

__all__ = ["check"]

Fields = Mapping[str, int]

_CHAIN = ("op0", "op1", "reverse0", "reverse1")
_SUMS = ("reduce", "store")
_HEADER_OF: dict[int, tuple[str, ...]] = {
    Opcode.LOAD_STATIONARY: ("kind", "tile", "sparsity"),
    Opcode.MULTIPLY_MOVING: ("accumulate", "kind", "tile", "sparsity", "rounding"),
    Opcode.TENSOR_TRANSPOSE: ("kind", "tile"),
    Opcode.TENSOR_TENSOR: ("op0", "reverse0"),
    Opcode.TENSOR_SCALAR: (*_CHAIN, "column0", "column1"),
    Opcode.SCALAR_TENSOR_TENSOR: (*_CHAIN, "column0"),
    Opcode.TENSOR_REDUCE: ("op0", "axes", "negate"),
    Opcode.TENSOR_SCAN: (*_CHAIN, "column0"),
    Opcode.SELECT: ("column0",),
    Opcode.RANGE_SELECT: ("op0", "op1", "column0", "column1", *_SUMS),
    Opcode.MEMSET: ("column0",),
    Opcode.MATCH_REPLACE8: ("column0",),
    Opcode.EXP: ("column0", "column1", *_SUMS),
    Opcode.ACTIVATION: (*_CHAIN, "column0", "column1", *_SUMS),
    Opcode.SCALAR_AFFINE: (*_CHAIN, "column0", "column1"),
}
_HEADER = (
    *("accumulate", "op0", "op1", "reverse0", "reverse1", "column0", "column1", "reduce", "store", "axes", "negate"),
    *("flags", "kind", "tile", "sparsity", "rounding", "header_reserved", "header_pad"),
)
_PATTERN_FIELDS = ("offset", "partition_start", "partition_count", "space", "dtype", "reserved") + tuple(
    f"{kind}{i}" for i in range(4) for kind in ("step", "count")
)
_REDUCING = (1, 4, 5, 6, 7)
_ACTIVATION_PAIRS = ((3, 1), (3, 2), (3, 0), (1, 0), (2, 0), (0, 0))
_SLOPED = (4, 5)
_LOAD_REDUCE = 3
_STOCHASTIC = 2
_SPARSE = 6


def check(
    word: int,
    cfg: Config,
    queue: int,
    left: Sequence[int] | None = None,
    loaded: int = 0,
    weights: WeightKinds | None = None,
) -> tuple[Cause, int]:
    """Cause and address of the fault of one instruction word in `queue`; (NONE, 0) if it may run.

    `left`: descriptors of each ring not yet released, if the caller keeps count; None skips that rule. `loaded`:
    functions that the last LOAD_TABLE of the queue holds, a bit each. `weights`: what its loads left in the array;
    None skips that rule.
    The address of an operand's fault is that of its first byte, of a BAD_SEMAPHORE the semaphore's
    byte address in its space, else 0; the core part of the address is 0.
    """
    f = INSTRUCTION.unpack(word)
    try:
        opcode = Opcode(f["opcode"])
    except ValueError:
        return Cause.ILLEGAL_OPCODE, 0
    kinds = f["wait0"], f["wait1"], f["update"]
    if not _here(opcode, queue, cfg) or _reserved(f, cfg) or max(kinds) > max(*Wait, *Update):
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
    if not _operators(f, cfg):
        return Cause.BAD_OPERATOR, 0
    function = f["imm2"] >> 32 & 0xFF
    if opcode == Opcode.ACTIVATION and function >= 16 and not loaded >> function & 1:
        return Cause.NOT_LOADED, 0
    for name in _operands(f):
        cause = operand(f, name, cfg)
        if cause:
            return cause, first_byte(f, name)
    cause, where = columns(f, cfg)
    if cause:
        return cause, where
    cause, where = scales(f, cfg)
    if cause:
        return cause, where
    each = 4 if f["kind"] == _SPARSE else 1  # tags of four columns are an element
    if "src1" in _operands(f) and opcode < 32 and elements(f, "src1") != -(-elements(f, "src0") // each):
        return Cause.BAD_PATTERN, first_byte(f, "src1")
    cause = together(f)
    if cause:
        return cause, first_byte(f, "dst")
    if opcode == Opcode.MULTIPLY_MOVING and weights is not None and not weights.agree(f):
        return Cause.ILLEGAL_DTYPE, first_byte(f, "src0")
    if opcode == Opcode.TENSOR_TRANSPOSE and weights is not None and not weights.taken(f):
        return Cause.LOAD_PENDING, first_byte(f, "src0")
    return Cause.NONE, 0


def _operands(f: Fields) -> tuple[str, ...]:
    """Operands of an instruction: those of its opcode, scales and tags of the array only where its kind has any."""
    names = OPERANDS.get(f["opcode"], ())
    beside = scaled(f["kind"]) or (f["kind"] == _SPARSE and f["opcode"] == Opcode.LOAD_STATIONARY)
    return tuple(n for n in names if n != "src1" or f["opcode"] >= 32 or beside)


def _here(opcode: Opcode, queue: int, cfg: Config) -> bool:
    """Whether the queue executes the opcode."""
    if opcode == Opcode.DMA_COPY:
        return queue in (Queue.SCALAR, Queue.SYNC)
    if opcode < 16:
        return True
    if opcode >= 96:
        return queue == Queue.GPSIMD and cfg.gpsimd.enabled
    owner = Queue.TENSOR if opcode < 32 else Queue.VECTOR if opcode < 64 else Queue.SCALAR
    return queue == owner


def _reserved(f: Fields, cfg: Config) -> bool:
    """Whether a field is set that means nothing in this instruction."""
    opcode = f["opcode"]
    operands = _operands(f)
    zero = [name for name in _HEADER if name not in _HEADER_OF.get(opcode, ())]
    patterns = ("src0", "src1", "dst")
    if opcode == Opcode.GP_RUN:  # its patterns are looked at by the program that runs
        zero += [f"{name}_reserved" for name in patterns]
    elif opcode != Opcode.DMA_COPY:  # its patterns are bits of a descriptor, which the DMA looks at
        zero += [f"{name}_reserved" for name in operands]
        zero += [f"{n}_{x}" for n in patterns if n not in operands for x in _PATTERN_FIELDS]
    if opcode == Opcode.EXP and f["reduce"] != _LOAD_REDUCE:
        zero.append("column1")
    if 1 << f["tile"] > cfg.tensor.groups or f["rounding"] > _STOCHASTIC:
        return True
    if f["sparsity"] > (6 if f["kind"] == _SPARSE else 0):
        return True
    return any(f[name] for name in zero) or not all(_immediate(f, i, cfg) for i in range(3))


def _immediate(f: Fields, number: int, cfg: Config) -> bool:
    """Whether an immediate may hold what it holds."""
    opcode, value = f["opcode"], f[f"imm{number}"]
    if opcode in (Opcode.DMA_TRIGGER, Opcode.DMA_COPY):
        return number < 2 or value == 0
    if opcode in (Opcode.LOAD_STATIONARY, Opcode.MULTIPLY_MOVING):
        if number == 2:
            return value == 0 or (f["rounding"] == _STOCHASTIC and value < 2**32)
        return value == 0 or f["src0_dtype"] == 7
    if opcode == Opcode.LOAD_TABLE:
        return value == 0 if number else value % 2**16 == 0 and value < 2**32
    if opcode == Opcode.GP_RUN:
        return True
    if opcode in (Opcode.GP_LOAD, Opcode.GP_STORE):
        tohost = 32 if opcode == Opcode.GP_LOAD else 0
        return value < 1 << (40, tohost, 0)[number]
    if opcode == Opcode.QUANTIZE_MX:
        return value < (1 << 27 if number == 0 else 1)
    if opcode == Opcode.SHUFFLE:
        return value < 1 << max(0, min(64, 6 * min(32, cfg.partitions) - 64 * number))
    if number == 2:
        if "store" not in _HEADER_OF.get(opcode, ()):
            return value == 0
        if opcode == Opcode.ACTIVATION:
            if value >> 46 or (value >> 40 and f["reduce"] == 0):
                return False
            value %= 2**32
        return value < 1 << (24 if f["store"] else 0)
    if opcode == Opcode.EXP and number == 1 and f["reduce"] != _LOAD_REDUCE:
        return value == 0
    if f"column{number}" not in _HEADER_OF.get(opcode, ()):
        return value == 0
    sloped = opcode == Opcode.ACTIVATION and f["imm2"] >> 32 & 0xFF in _SLOPED
    if (number == 0 and sloped) or (number == 1 and opcode == Opcode.RANGE_SELECT):
        value %= 2**32  # above: slope, start
    return value < 1 << (24 if f[f"column{number}"] else 32)


def _operators(f: Fields, cfg: Config) -> bool:
    """Whether operators, functions and masks exist and go together."""
    opcode, reduce = f["opcode"], f["reduce"]
    ops = [f[name] for name in ("op0", "op1") if name in _HEADER_OF.get(opcode, ())]
    if opcode == Opcode.SHUFFLE:
        block = min(32, cfg.partitions)
        mask = f["imm0"] + (f["imm1"] << 64) + (f["imm2"] << 128)
        return all(mask >> 6 * j & 63 in (*range(block), 32) for j in range(block))
    if f["store"] and reduce == 0:
        return False
    if opcode == Opcode.TENSOR_REDUCE:
        return ops[0] in _REDUCING
    if opcode == Opcode.TENSOR_SCAN:
        return all(1 <= op <= 5 for op in ops)
    if opcode == Opcode.RANGE_SELECT:
        return all(8 <= op <= 13 for op in ops) and reduce != _LOAD_REDUCE
    if opcode == Opcode.ACTIVATION:
        function, reduction = f["imm2"] >> 32 & 0xFF, f["imm2"] >> 40 & 63
        return (
            (ops[0], ops[1]) in _ACTIVATION_PAIRS
            and (function <= 6 or 16 <= function <= 31)
            and (reduce == 0 or reduction in _REDUCING)
            and not (reduce == _LOAD_REDUCE and ops[1])
        )
    if opcode == Opcode.SCALAR_AFFINE:
        return ops[0] <= 3 and ops[1] <= 2
    if any(not (op <= 19 or 32 <= op <= 37) for op in ops):
        return False
    return not (len(ops) == 2 and max(ops) >= 32 and any(1 <= op <= 19 for op in ops))
