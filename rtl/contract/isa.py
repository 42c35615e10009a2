"""Queues, opcodes, instruction words and faults.

An instruction is 128 bytes in HBM: a header, three access patterns (src0, src1, dst) and immediates.
Its ticket is (queue, sequence number in the queue); the hardware counts, the word does not hold it.
A descriptor (contract.descriptor) has as many. docs/isa.md tells every field; the tests pin literal words.
"""

from enum import IntEnum

from rtl.contract.access_pattern import PATTERN
from rtl.contract.words import Field, Word

__all__ = [
    "COPY_AT",
    "COPY_QUEUES",
    "INSTRUCTION",
    "INSTRUCTION_BYTES",
    "MX_ROWS",
    "REDUCTIONS",
    "SHUFFLE_KEEP",
    "AluOp",
    "Cause",
    "Function",
    "Opcode",
    "Queue",
    "Reduce",
    "Rounding",
    "ScaleRule",
    "Update",
    "Wait",
    "block",
    "is_opcode_of",
    "mx_scale_partition",
]

INSTRUCTION_BYTES = 128


class Queue(IntEnum):
    """The five in-order instruction queues of a core."""

    TENSOR = 0
    VECTOR = 1
    SCALAR = 2
    GPSIMD = 3
    SYNC = 4


class Opcode(IntEnum):
    """What an instruction does. Below 16: any queue. From 16: the queue of its engine."""

    NOP = 0  # waits and updates only
    DMA_TRIGGER = 1  # imm0: ring, imm1: number of descriptors released to it
    DMA_COPY = 3  # scalar, sync: the descriptor in bits 959:256 goes to the queue's own ring
    LOAD_STATIONARY = 16  # tensor: src0 = [K partitions, M columns] in SBUF
    MULTIPLY_MOVING = 17  # tensor: src0 = [K partitions, N columns] in SBUF, dst = [M, N] in PSUM
    TENSOR_TRANSPOSE = 18  # tensor: src0 = [K partitions, M columns] in SBUF, dst = [M, K] in PSUM, last row first
    TENSOR_COPY = 32  # vector: dst = src0, converted
    TENSOR_TENSOR = 33  # dst = src0 op0 src1
    TENSOR_SCALAR = 34  # dst = (src0 op0 a) op1 b
    SCALAR_TENSOR_TENSOR = 35  # dst = (src0 op0 a) op1 src1
    TENSOR_REDUCE = 36  # dst = op0 over the innermost `axes` + 1 axes of src0
    TENSOR_SCAN = 37  # r[i] = (r[i-1] op0 src0[i]) op1 src1[i], r[-1] = a
    SELECT = 38  # dst = src0 where src1 is not 0, else a
    COPY_PREDICATED = 39  # dst = src0 where src1 is not 0, else untouched
    RANGE_SELECT = 40  # dst = src0 where (i + start op0 a) and (i + start op1 b), else the least FP32
    BN_STATS = 41  # dst = count, mean, variance * count of even elements, then of odd ones
    BN_AGGR = 42  # dst = mean, variance of the triples in src0
    RECIPROCAL = 43  # dst = 1 / src0
    MEMSET = 44  # dst = a
    MAX8 = 45  # dst = the 8 largest of src0, descending
    FIND_INDEX8 = 46  # dst = positions in src0 of the 8 values src1
    MATCH_REPLACE8 = 47  # dst = src0 with one occurrence of each of the 8 values src1 replaced by a
    TRANSPOSE = 48  # dst = src0, blocks of isa.block(P) x isa.block(P) transposed
    SHUFFLE = 49  # dst partition j of a block = src0 partition of SHUFFLE_MASK[j] of the block
    EXP = 50  # dst = exp(src0 - a); sum
    QUANTIZE_MX = 51  # dst = MX elements of src0, four a column; scales at imm0
    ACTIVATION = 64  # scalar: dst = function((src0 op0 a) op1 b); reduction
    LOAD_TABLE = 65  # scalar: the table of activation functions = src0; imm0: functions it holds, a bit each
    SCALAR_COPY = 66  # scalar: dst = src0, converted
    SCALAR_AFFINE = 67  # scalar: dst = (src0 op0 a) op1 b
    GP_LOAD = 96  # gpsimd: local memory of cores = src0; imm0: gpsimd.LOAD, imm1: address of tohost, 0 for none
    GP_RUN = 97  # gpsimd: cores run an image; imm0: gpsimd.RUN; operands, imm1 and imm2 as the image takes them
    GP_STORE = 98  # gpsimd: dst = local memory of one core; imm0: gpsimd.LOAD


OPCODE_QUEUE: dict[Opcode, Queue] = {
    Opcode.LOAD_STATIONARY: Queue.TENSOR,
    Opcode.MULTIPLY_MOVING: Queue.TENSOR,
    Opcode.TENSOR_TRANSPOSE: Queue.TENSOR,
    **{opcode: Queue.VECTOR for opcode in Opcode if 32 <= opcode < 64},
    **{opcode: Queue.SCALAR for opcode in Opcode if 64 <= opcode < 96},
    **{opcode: Queue.GPSIMD for opcode in Opcode if opcode >= 96},
}


COPY_QUEUES = (Queue.SCALAR, Queue.SYNC)
"""Queues with DMA_COPY, and so with a ring of their own, which is not in HBM."""


def is_opcode_of(opcode: Opcode, queue: Queue) -> bool:
    """Whether the queue executes it, if the core has its engine."""
    return queue in COPY_QUEUES if opcode == Opcode.DMA_COPY else OPCODE_QUEUE.get(opcode, queue) == queue


class AluOp(IntEnum):
    """Operators of the vector engine on FP32 values x (first) and y. From 32: on the bits of integers."""

    BYPASS = 0  # x
    ADD = 1
    SUBTRACT = 2  # x - y
    MULTIPLY = 3
    MAX = 4
    MIN = 5
    ABSMAX = 6  # max(|x|, |y|)
    ABSMIN = 7
    EQ = 8  # comparisons and logic give 1.0 or 0.0
    NE = 9
    GT = 10  # x > y
    GE = 11
    LT = 12
    LE = 13
    AND = 14  # both not 0
    OR = 15
    XOR = 16
    ABS = 17  # |x|
    SQUARE = 18  # x * x
    RELU = 19  # max(x, +0)
    BIT_AND = 32
    BIT_OR = 33
    BIT_XOR = 34
    BIT_NOT = 35
    SHIFT_LEFT = 36  # by y mod 32
    SHIFT_RIGHT = 37  # zeros come in


REDUCTIONS = (AluOp.ADD, AluOp.MAX, AluOp.MIN, AluOp.ABSMAX, AluOp.ABSMIN)
"""Operators that may reduce. Identities: +0, -Inf, +Inf, +0, +Inf."""


class Reduce(IntEnum):
    """What an instruction does to the accumulator of its engine, one FP32 value a partition."""

    IDLE = 0  # nothing; afterwards the accumulator has no meaning
    RESET_REDUCE = 1  # the result alone
    REDUCE = 2  # accumulator op result
    LOAD_REDUCE = 3  # b op result; b is the instruction's second operand


class ScaleRule(IntEnum):
    """Exponent of an MX scale: floor(log2) of the block's largest magnitude, less this."""

    OCP = 0  # Emax of the element format: the largest may saturate
    EMAX_1 = 1  # Emax - 1


class Function(IntEnum):
    """Functions of the scalar engine. Below 16: without a table."""

    COPY = 0
    ABS = 1
    SQUARE = 2
    RELU = 3
    PRELU = 4  # x > 0 ? x : slope * x, slope in imm0[63:32]
    LEAKY_RELU = 5  # the same
    SIGN = 6
    EXP = 16
    TANH = 17
    SIGMOID = 18
    GELU = 19  # x (1 + erf(x / sqrt 2)) / 2
    GELU_TANH = 20
    SILU = 21
    SELU = 22
    SOFTPLUS = 23
    MISH = 24
    ERF = 25
    LOG = 26
    SQRT = 27
    RSQRT = 28
    RECIPROCAL = 29
    SIN = 30
    ARCTAN = 31


SHUFFLE_KEEP = 32
"""An entry of a SHUFFLE mask (6 bits each, entry j at bit 6j of imm0 to imm2) that leaves its partition."""


MX_ROWS = 8
"""Partitions of an MX block; each holds four of its elements."""


def mx_scale_partition(row: int, slot: int, partitions: int) -> int:
    """Partition with the scales of partition `row` of an MX operand; four tensors fit, slots 0 to 3.

    Q floor(row / Q) + slot Q / 8 + floor((row mod Q) / 8), Q = block(partitions).
    """
    q = block(partitions)
    return row // q * q + slot * (q // MX_ROWS) + row % q // MX_ROWS


def block(partitions: int) -> int:
    """Partitions of a block of TRANSPOSE and SHUFFLE: 32, or all if there are fewer."""
    return min(32, partitions)


class Wait(IntEnum):
    """Condition on a semaphore that must hold before an instruction issues."""

    NONE = 0
    GE = 1  # semaphore >= value, signed
    EQ = 2


class Update(IntEnum):
    """What happens to a semaphore when the last write of an instruction or descriptor has committed."""

    NONE = 0
    ADD = 1
    SET = 2


class Rounding(IntEnum):
    """What MULTIPLY_MOVING makes of a sum, old contents added, before it goes to PSUM."""

    FP32 = 0  # as it is
    NEAREST = 1  # rounded to BF16, nearest even
    STOCHASTIC = 2  # rounded to BF16 up or down at random, by the seed in imm2 (docs/numerics.md)


class Cause(IntEnum):
    """Why a queue or ring halted. The record names the ticket and, where one is known, the address."""

    NONE = 0
    ILLEGAL_OPCODE = 1  # no such opcode, or not in this queue, or a reserved field is set
    ILLEGAL_DTYPE = 2  # the engine does not take this dtype
    BAD_SPACE = 3  # the engine cannot reach this memory
    BAD_PARTITION = 4  # start partition or count breaks access_pattern.start_partition_rule
    BAD_PATTERN = 5  # a count of 0, more elements than allowed, shapes differ, matmul writes twice
    MISALIGNED = 6  # offset is not a multiple of the element size
    OUT_OF_RANGE = 7  # an operand leaves its memory
    BAD_RING = 8  # DMA_TRIGGER of a ring that does not exist or of more descriptors than it has
    NO_ROUTE = 9  # the address belongs to a core that cannot be reached
    BAD_DESCRIPTOR = 10  # a row of 0 bytes, a count of 0, a reserved field
    BUS_ERROR = 11  # HBM answered with an error
    BAD_SEMAPHORE = 12  # a semaphore index or address that does not exist
    BAD_OPERATOR = 13  # an operator, reduction, function or mask that the opcode or the formats do not take
    NOT_LOADED = 14  # a function that the table loaded last does not hold
    BANK_CONFLICT = 15  # sums of two row tiles, or sums and a transpose, come to one PSUM bank
    LOAD_PENDING = 16  # a transpose would overwrite weights that no matmul has taken
    TAGS = 17  # tags of a stationary operand do not ascend within a bus, or are not below the group
    GP_TRAP = 18  # a core trapped and nobody handled it; of this, the next two and GP_DMA the address is gpsimd.FAULT
    GP_WATCHDOG = 19  # a run took too long
    GP_EXIT = 20  # a core ended with another exit value than 0
    GP_NO_IMAGE = 21  # GP_RUN of a core that no GP_LOAD of the program has filled
    GP_CORES = 22  # no core is named, or one that does not exist, or more than one in GP_STORE
    GP_DMA = 23  # a copy that a core pushed was refused or failed
    BAD_SEQUENCE = 24  # operations, or registers that a word names, that are none or do not fit; see contract.sequence
    ENDLESS_LOOP = 25  # too many words of operations in a row, and no instruction between them
    BAD_SIZE = 26  # a number that a run has worked out is not between 0 and what the program has room for
    BAD_INDEX = 27  # an index of a descriptor is none of a row of its table; the address is that of the index


def _prefixed(prefix: str, word: Word) -> tuple[Field, ...]:
    return tuple(Field(f"{prefix}_{f.name}", f.width, f.doc, f.signed) for f in word)


INSTRUCTION = Word(
    "instruction",
    1024,
    (
        Field("opcode", 8, "Opcode"),
        Field("accumulate", 1, "MULTIPLY_MOVING: add to PSUM instead of overwriting"),
        Field("op0", 6, "AluOp"),
        Field("op1", 6, "AluOp"),
        Field("reverse0", 1, "a op0 x instead of x op0 a"),
        Field("reverse1", 1),
        Field("column0", 1, "a is a column: FP32 in SBUF, at byte imm0[23:0] of src0's partitions"),
        Field("column1", 1, "b is a column, at byte imm1[23:0]"),
        Field("reduce", 2, "Reduce"),
        Field("store", 1, "the accumulator goes to SBUF as FP32, at byte imm2[23:0] of dst's partitions"),
        Field("axes", 2, "TENSOR_REDUCE: reduced axes less one"),
        Field("negate", 1, "TENSOR_REDUCE: the result's sign is turned"),
        Field("flags", 1, "reserved, 0"),
        Field("wait0", 4, "Wait"),
        Field("wait0_semaphore", 12),
        Field("wait1", 4, "Wait"),
        Field("wait1_semaphore", 12),
        Field("wait0_value", 32, signed=True),
        Field("wait1_value", 32, signed=True),
        Field("update", 4, "Update"),
        Field("update_semaphore", 12),
        Field("kind", 3, "Kind: what a row of the array takes in a beat"),
        Field("tile", 2, "rows of the array are 1, 2 or 4 tiles (0, 1, 2); the one that src0 lies in"),
        Field("sparsity", 3, "kind SPARSE: Sparsity.code, else 0"),
        Field("rounding", 2, "MULTIPLY_MOVING: Rounding"),
        Field("header_reserved", 6),
        Field("update_value", 32, signed=True),
        Field("header_pad", 64),
        *_prefixed("src0", PATTERN),
        *_prefixed("src1", PATTERN),
        *_prefixed("dst", PATTERN),
        Field(
            "imm0",
            64,
            "bits 31:0 a: FP32, for bit operators an integer; ACTIVATION: bits 63:32 slope; QUANTIZE_MX: scales; "
            "e2m1: map",
        ),
        Field("imm1", 64, "bits 31:0 b; RANGE_SELECT: bits 63:32 start, an FP32 value"),
        Field(
            "imm2",
            64,
            "bits 23:0 place of the accumulator; ACTIVATION: 39:32 Function, 45:40 AluOp that reduces; "
            "MULTIPLY_MOVING: 31:0 seed",
        ),
    ),
)


COPY_AT = INSTRUCTION.offset("src0_offset")
"""First bit of the descriptor in a DMA_COPY: operands and imm0, imm1 are its 704 bits, imm2 is 0."""
