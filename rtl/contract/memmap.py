"""One 64-bit address for everything, and the control registers of a core.

An address names (rack, server, chip, core, space, offset); DMA, GPSIMD and the link use the same
addresses, so that a write can name another core's memory, and a semaphore update travels the path
of the payload it announces.
"""

from enum import IntEnum

from rtl.contract.words import Field, Word

__all__ = [
    "ADDRESS",
    "PARTITION_STRIDE_BYTES",
    "Control",
    "CoreId",
    "EndpointRegister",
    "EngineRegister",
    "LinkRegister",
    "QueueRegister",
    "RingRegister",
    "Space",
    "address",
    "core_id",
    "core_place",
]

PARTITION_STRIDE_BYTES = 1 << 18
"""Distance of two partitions in the address map, in SBUF and PSUM, whatever their real size."""


class Space(IntEnum):
    """Which memory of a core an address means."""

    HBM = 0
    SBUF = 1
    PSUM = 2
    SEMAPHORES = 3
    GPSIMD = 4
    CONTROL = 5


ADDRESS = Word(
    "address",
    64,
    (
        Field("offset", 40, "byte in the space; SBUF and PSUM: partition * 2^18 + byte"),
        Field("space", 4, "Space"),
        Field("core", 4),
        Field("chip", 4),
        Field("server", 6),
        Field("rack", 4),
        Field("zero", 2, "must be 0"),
    ),
)


class CoreId:
    """Width of the (rack, server, chip, core) part and where it starts in an address."""

    BITS = 18
    LSB = 44


def core_id(rack: int = 0, server: int = 0, chip: int = 0, core: int = 0) -> int:
    """The part of an address that names a core. ValueError if a number does not fit."""
    return ADDRESS.pack(rack=rack, server=server, chip=chip, core=core) >> CoreId.LSB


def core_place(number: int) -> tuple[int, int, int, int]:
    """(rack, server, chip, core) of a core id."""
    at = ADDRESS.unpack(number << CoreId.LSB)
    return at["rack"], at["server"], at["chip"], at["core"]


def address(space: Space, offset: int, *, core_id: int = 0) -> int:
    """Address of `offset` in `space` of the core `core_id`. ValueError if out of range."""
    if not 0 <= offset < 1 << 40:
        raise ValueError(f"offset {offset} does not fit in the 40 bits of an address")
    if not 0 <= core_id < 1 << CoreId.BITS:
        raise ValueError(f"core id {core_id} does not fit in {CoreId.BITS} bits")
    return offset | int(space) << 40 | core_id << CoreId.LSB


class Control(IntEnum):
    """Byte offsets in the control space. All registers are 64 bits wide and 8-byte aligned."""

    RUN = 0x0000  # write 1: clear, start; 3: start, semaphores stay; 0: stop counters, to read; reads 1 while running
    STATUS = 0x0008  # bit 0 done (all queues and rings), bit 1 a queue or ring has faulted
    CYCLES = 0x0010  # tensor cycles counted while running
    CORE_ID = 0x0018
    TENSOR_FIRST = 0x0020  # cycle of the first moving beat that entered the array
    TENSOR_LAST = 0x0028  # cycle of the last sum that left the array
    HBM_READ = 0x0030  # bytes read from HBM by DMA and fetch
    HBM_WRITTEN = 0x0038
    VECTOR_FIRST = 0x0040  # cycle of the vector engine's first element beat
    VECTOR_LAST = 0x0048  # cycle in which the last write of its instructions committed
    SCALAR_FIRST = 0x0050  # the same of the scalar engine
    SCALAR_LAST = 0x0058
    CLEAR = 0x0060  # write 1: semaphores 0, no class of the endpoint failed; ignored while a program runs; reads 0
    QUEUE = 0x1000  # + queue * 0x100 + QueueRegister
    RING = 0x2000  # + ring * 0x100 + RingRegister
    ENDPOINT = 0x3000  # + EndpointRegister
    ENGINE = 0x4000  # + engine * 0x100 + EngineRegister
    CONFLICT = 0x5000  # + port * 8: cycles in which the SBUF or PSUM port was refused
    GPSIMD = 0x5800  # + core * 0x100 + gpsimd.Counter * 8
    SEMAPHORE = 0x6000  # + index * 8: value, read only here
    LINK = 0x7000  # + port * 0x100 + LinkRegister
    PART = 0x8000  # + engine * 0x200 + state * 0x100 + (opcode % 32) * 8: part of BUSY (0) or of `unit` (1)
    END = 0x9000


class QueueRegister(IntEnum):
    """Registers of an instruction queue."""

    BASE = 0x00  # HBM offset of the first instruction, 128-byte aligned
    COUNT = 0x08  # instructions in the queue
    ISSUED = 0x10
    RETIRED = 0x18
    FAULT = 0x20  # bits 7:0 Cause (0 none), 31:16 sequence number of the ticket
    FAULT_ADDRESS = 0x28
    COPIES = 0x30  # descriptors of DMA_COPY that the DMA has taken; this and the rest of isa.COPY_QUEUES
    COPIED = 0x38  # of these, completed
    COPY_FAULT = 0x40  # as FAULT, of the DMA_COPY whose descriptor failed
    COPY_FAULT_ADDRESS = 0x48


class RingRegister(IntEnum):
    """Registers of a DMA ring."""

    BASE = 0x00  # HBM offset of the first descriptor, 128-byte aligned
    COUNT = 0x08  # descriptors in the ring
    RELEASED = 0x10  # descriptors released by DMA_TRIGGER so far
    COMPLETED = 0x18
    FAULT = 0x20
    FAULT_ADDRESS = 0x28


class EngineRegister(IntEnum):
    """Cycle counters of an engine; they sum to CYCLES."""

    BUSY = 0x00
    IDLE = 0x08
    STALL = 0x10  # + 8 * position in timing.STALLS[engine]


class EndpointRegister(IntEnum):
    """What a core did not take from other cores, since reset; read only. Counters stop at 2^32 - 1."""

    REFUSED = 0x00  # requests not executed
    REFUSED_ADDRESS = 0x08  # of the first of them
    REFUSED_SOURCE = 0x10  # endpoint that sent it
    FAILED = 0x18  # signals not done because HBM had refused a write of their class
    DROPPED = 0x20  # responses that nobody waited for
    FOREIGN = 0x28  # of REFUSED and DROPPED, those for another core or endpoint; a port counts them as FOREIGN too


class LinkRegister(IntEnum):
    """Registers of a port, read only."""

    STATE = 0x00  # bits 3:0 LinkState
    SESSION = 0x08  # bits 15:0 own, 31:16 the partner's as last seen
    WIDTH = 0x10  # lanes in use: bits 4:0 sending, 12:8 receiving
    LANES = 0x18  # bits 17:0 dead, 49:32 weak, as this end receives them
    IN_FLIGHT = 0x20  # payload flits not acknowledged
    CAUSE = 0x40  # + 8 * LinkCause: a counter that stops at 2^32 - 1
