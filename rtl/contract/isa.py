"""Queues, opcodes, instruction words, access patterns, faults and DMA descriptors.

An instruction is 128 bytes in HBM: a header, three access patterns (src0, src1, dst) and immediates.
Its ticket is (queue, sequence number in the queue); the hardware counts, the word does not hold it.
A descriptor is 128 bytes too. docs/isa.md tells every field; the tests pin literal words.
"""

from dataclasses import dataclass
from enum import IntEnum

from rtl.contract.words import Field, Word

__all__ = [
    "DESCRIPTOR",
    "DIMENSIONS",
    "INSTRUCTION",
    "INSTRUCTION_BYTES",
    "PATTERN",
    "AccessPattern",
    "Cause",
    "Opcode",
    "Queue",
    "Update",
    "Wait",
    "start_partition_rule",
]

INSTRUCTION_BYTES = 128
DIMENSIONS = 4


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
    LOAD_STATIONARY = 16  # tensor: src0 = [K partitions, M columns] in SBUF
    MULTIPLY_MOVING = 17  # tensor: src0 = [K partitions, N columns] in SBUF, dst = [M, N] in PSUM
    TENSOR_COPY = 32  # vector: dst = src0, converted


OPCODE_QUEUE: dict[Opcode, Queue] = {
    Opcode.LOAD_STATIONARY: Queue.TENSOR,
    Opcode.MULTIPLY_MOVING: Queue.TENSOR,
    Opcode.TENSOR_COPY: Queue.VECTOR,
}


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


class Cause(IntEnum):
    """Why a queue or ring halted. The record names the ticket and, where one is known, the address."""

    NONE = 0
    ILLEGAL_OPCODE = 1  # no such opcode, or not in this queue, or a reserved field is set
    ILLEGAL_DTYPE = 2  # the engine does not take this dtype
    BAD_SPACE = 3  # the engine cannot reach this memory
    BAD_PARTITION = 4  # start partition or count breaks the rule of start_partition_rule
    BAD_PATTERN = 5  # a count of 0, more elements than allowed, shapes differ, matmul writes twice
    MISALIGNED = 6  # offset is not a multiple of the element size
    OUT_OF_RANGE = 7  # an operand leaves its memory
    BAD_RING = 8  # DMA_TRIGGER of a ring that does not exist or of more descriptors than it has
    NO_ROUTE = 9  # the address belongs to a core that cannot be reached
    BAD_DESCRIPTOR = 10  # a row of 0 bytes, a count of 0, a reserved field
    BUS_ERROR = 11  # HBM answered with an error
    BAD_SEMAPHORE = 12  # a semaphore index or address that does not exist


PATTERN = Word(
    "access_pattern",
    192,
    (
        Field("offset", 24, "byte in the partition of the first element"),
        Field("partition_start", 8),
        Field("partition_count", 8, "1 to P"),
        Field("space", 4, "memmap.Space: SBUF or PSUM"),
        Field("dtype", 4, "formats.Format.code"),
        Field("step0", 16, "elements between neighbours, innermost", signed=True),
        Field("count0", 16),
        Field("step1", 16, signed=True),
        Field("count1", 16),
        Field("step2", 16, signed=True),
        Field("count2", 16),
        Field("step3", 16, "outermost", signed=True),
        Field("count3", 16),
        Field("reserved", 16),
    ),
)


def _prefixed(prefix: str, word: Word) -> tuple[Field, ...]:
    return tuple(Field(f"{prefix}_{f.name}", f.width, f.doc, f.signed) for f in word)


INSTRUCTION = Word(
    "instruction",
    1024,
    (
        Field("opcode", 8, "Opcode"),
        Field("accumulate", 1, "MULTIPLY_MOVING: add to PSUM instead of overwriting"),
        Field("flags", 23, "reserved, 0"),
        Field("wait0", 4, "Wait"),
        Field("wait0_semaphore", 12),
        Field("wait1", 4, "Wait"),
        Field("wait1_semaphore", 12),
        Field("wait0_value", 32, signed=True),
        Field("wait1_value", 32, signed=True),
        Field("update", 4, "Update"),
        Field("update_semaphore", 12),
        Field("header_reserved", 16),
        Field("update_value", 32, signed=True),
        Field("header_pad", 64),
        *_prefixed("src0", PATTERN),
        *_prefixed("src1", PATTERN),
        *_prefixed("dst", PATTERN),
        Field("imm0", 64),
        Field("imm1", 64),
        Field("imm2", 64),
    ),
)


DESCRIPTOR = Word(
    "descriptor",
    1024,
    (
        Field("source", 64, "memmap.ADDRESS of the first byte"),
        Field("destination", 64),
        Field("row_bytes", 32, "contiguous bytes on both sides, 1 to 2^18"),
        Field("class_", 3, "traffic class"),
        Field("reserved0", 29),
        Field("count0", 32, "rows along the innermost outer dimension, at least 1"),
        Field("source_step0", 48, "bytes; 0 broadcasts", signed=True),
        Field("destination_step0", 48, signed=True),
        Field("count1", 32),
        Field("source_step1", 48, signed=True),
        Field("destination_step1", 48, signed=True),
        Field("count2", 32),
        Field("source_step2", 48, signed=True),
        Field("destination_step2", 48, signed=True),
        Field("signal_address", 64, "address in a semaphore space: index * 4"),
        Field("signal_update", 4, "Update"),
        Field("reserved1", 28),
        Field("signal_value", 32, signed=True),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPattern:
    """Which elements of SBUF or PSUM an instruction touches.

    All active partitions share the free pattern: up to four (step, count) pairs in elements,
    innermost first, from byte `offset`. Rules: docs/isa.md.
    """

    space: int
    dtype: int
    partition_start: int
    partition_count: int
    offset: int
    dims: tuple[tuple[int, int], ...]

    def fields(self) -> dict[str, int]:
        """The fields of PATTERN. ValueError if there are more than four dimensions."""
        if not 1 <= len(self.dims) <= DIMENSIONS:
            raise ValueError(f"an access pattern has 1 to {DIMENSIONS} dimensions, not {len(self.dims)}")
        values = {
            "space": self.space,
            "dtype": self.dtype,
            "partition_start": self.partition_start,
            "partition_count": self.partition_count,
            "offset": self.offset,
        }
        padded = self.dims + ((0, 1),) * (DIMENSIONS - len(self.dims))
        for i, (step, count) in enumerate(padded):
            values[f"step{i}"] = step
            values[f"count{i}"] = count
        return values

    @property
    def elements(self) -> int:
        """Elements per partition."""
        n = 1
        for _, count in self.dims:
            n *= count
        return n


def start_partition_rule(start: int, count: int, partitions: int) -> bool:
    """Whether `count` partitions may start at `start` of `partitions`.

    More than half: at 0. More than a quarter: at 0 or the half. Else at any quarter.
    Source: Trainium architecture guide, partition access rules (there for 128).
    """
    if not 1 <= count <= partitions:
        return False
    if count > partitions // 2:
        return start == 0
    if count > partitions // 4:
        return start in (0, partitions // 2)
    return start in (0, partitions // 4, partitions // 2, 3 * (partitions // 4))
