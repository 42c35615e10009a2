"""What firmware sees of the GPSIMD engine: the address map of a core, its mailbox, and how a run is named.

Addresses are 32 bits, bytes, little endian. RTL, golden models, the loader, `link.ld` and `plexus/contract.h` all take
their numbers from here; docs/firmware.md shows them as tables.
"""

from enum import IntEnum

from rtl.contract.words import Field, Word

__all__ = [
    "BARE_EXTENSIONS",
    "COPIES_MAX",
    "CORES_MAX",
    "FAULT",
    "LANE_BITS",
    "LOAD",
    "LOCAL_BYTES",
    "LOCAL_BYTES_MAX",
    "LOCAL_BYTES_MIN",
    "RUN",
    "SHARED_BYTES",
    "STACK_BYTES",
    "VECTOR_EXTENSIONS",
    "WATCHDOG_CYCLES",
    "Counter",
    "Mailbox",
    "Region",
    "WaitFor",
    "cores",
    "lane_address",
    "lanes",
    "row_address",
]

CORES_MAX = 8
LANE_BITS = 32
"""Lane i of a vector register is partition i of those a core serves: VLEN = LANE_BITS * lanes."""

LOCAL_BYTES = 1 << 16
LOCAL_BYTES_MIN, LOCAL_BYTES_MAX = 1 << 14, 1 << 22
SHARED_BYTES = 1 << 13
STACK_BYTES = 1 << 12
"""Stack of an image unless its build says otherwise."""

COPIES_MAX = 4
"""Copies of a core that have not ended, at most; DMA_PUSH waits while there are so many."""

WATCHDOG_CYCLES = 1 << 22
"""GPSIMD cycles after which a run has failed, unless the instruction says otherwise."""

BARE_EXTENSIONS = ("i", "m", "c", "zca", "zmmul", "zicsr", "zifencei")
VECTOR_EXTENSIONS = ("zve32x",)
"""What a core executes, by the names of a toolchain; beside these zvlNb with N up to its VLEN."""


class Region(IntEnum):
    """First bytes of what a core reaches. Loads, stores and fetches elsewhere trap, so a null pointer does."""

    LOCAL = 0x1000_0000  # local memory of this core: stack at the bottom, then text, data and bss
    LOCAL_TOO = 0x8000_0000  # the same bytes: images linked for a memory at 2 GiB, as public test suites are
    SBUF_ROWS = 0x2000_0000  # local partition * 2^18 + byte
    SBUF_LANES = 0x3000_0000  # byte column c of local partition p of L: (c / 4) * 4L + 4p + c mod 4
    MAILBOX = 0x4000_0000  # registers, see Mailbox
    SHARED = 0x5000_0000  # 8 KiB that all cores of the engine share


class Mailbox(IntEnum):
    """Byte offsets in Region.MAILBOX. Registers are 32 bits wide and take whole, aligned words only.

    A load gives 0 from what is only written; a store to what is only read, and any access elsewhere, traps.
    """

    ARGUMENT = 0x000  # r: the 128-byte instruction GP_RUN, 32 words, least significant first
    CORE = 0x080  # r: number of this core in the engine
    CORES = 0x084  # r: cores of the engine; those of this run are in the instruction, RUN.cores
    DONE = 0x088  # w: ends the run of this core, with this exit value, once its stores have committed
    PUT = 0x08C  # w: bits 7:0 are printed
    LANES = 0x090  # r: partitions that this core serves, L
    LOCAL_BYTES = 0x094  # r: size of local memory
    BARRIER = 0x098  # w: this core has arrived; r: barriers that all cores of the run have passed
    MTIME = 0x0A0  # r: CYCLES of the core, in tensor cycles; a load keeps bits 63:32 for MTIMEH
    MTIMEH = 0x0A4  # r: bits 63:32 as they were at the last load of MTIME
    MTIMECMP = 0x0A8  # rw: interrupt 7 is pending while MTIME >= MTIMECMP; all ones at the start of a run
    MTIMECMPH = 0x0AC  # rw
    WAIT_SEMAPHORE = 0x0B0  # rw: bits 7:0: index of the semaphore that WAIT_COMPARE looks at, modulo their number
    WAIT_VALUE = 0x0B4  # rw: what it is compared with, signed
    WAIT_COMPARE = 0x0B8  # rw: bits 2:0: WaitFor; interrupt 11 is pending while that holds, and ends a wfi
    WAIT_STATUS = 0x0BC  # r: 1 while the condition holds
    DMA_PUSH = 0x0C0  # w: address in local memory of a descriptor, a multiple of 128; waits until it has been read
    DMA_DONE = 0x0C4  # r: descriptors of this core completed since the start of the run
    DMA_FREE = 0x0C8  # r: descriptors that this core may push before one of its own must complete, 4 at most
    TRAP = 0x0D0  # w: ends the run of this core as GP_TRAP, with this mcause
    TRAP_PC = 0x0D4  # rw: pc of that trap, written first
    TRAP_VALUE = 0x0D8  # rw: mtval of that trap, written first
    COUNTERS = 0x100  # r: + 8 * Counter: bits 31:0; + 4: bits 63:32 of the counter loaded last, as they were then
    SEMAPHORE_BASE = 0x4000  # rw: + 4 * index: a load gives the value, a store sets it
    SEMAPHORE_ADD = 0x8000  # rw: + 4 * index: a load gives the value, a store adds to it
    END = 0xC000


class WaitFor(IntEnum):
    """Conditions of WAIT_COMPARE; those of a semaphore are as in isa.Wait."""

    NONE = 0  # never holds
    SEMAPHORE_GE = 1  # semaphore >= WAIT_VALUE, signed
    SEMAPHORE_EQ = 2
    TIMER = 3  # MTIME >= MTIMECMP
    DMA = 4  # DMA_DONE >= WAIT_VALUE
    BARRIER = 5  # BARRIER >= WAIT_VALUE


class Counter(IntEnum):
    """Positions in the counters of a core. BUSY to FAULT are GPSIMD cycles and sum to those of the run."""

    BUSY = 0  # an instruction retired
    IDLE = 1  # no run
    SLEEP = 2  # wfi, timer or DMA
    SEMAPHORE = 3  # wfi, semaphore or barrier
    FETCH = 4
    BRANCH = 5
    LOAD = 6
    UNIT = 7  # multiply and divide
    MEMORY = 8
    SBUF = 9
    VECTOR = 10  # a vector instruction is under way
    DMA = 11
    CLOCK = 12
    FAULT = 13
    INSTRUCTIONS = 14  # retired
    MICRO_OPS = 15  # registers, rows of local memory and elements that vector instructions went through
    BYTES = 16  # loaded from and stored to SBUF


RUN = Word(
    "gp_run",
    64,
    (
        Field("entry", 32, "address of the first instruction"),
        Field("cores", 8, "a bit for each core that runs"),
        Field("watchdog", 24, "GPSIMD cycles, 0 for 2^22"),
    ),
)
"""imm0 of GP_RUN; src0, src1, dst, imm1 and imm2 belong to the operator, which checks them."""

LOAD = Word(
    "gp_load",
    64,
    (
        Field("offset", 32, "byte in local memory of the first word, a multiple of 4 * lanes"),
        Field("cores", 8, "GP_LOAD: a bit for each core that gets it; GP_STORE: one bit, whose memory it is"),
        Field("reserved", 24),
    ),
)
"""imm0 of GP_LOAD and GP_STORE. Their operand has 32-bit elements on `lanes` partitions: element c of the p-th of them
is word c * lanes + p, counted from `offset`."""

FAULT = Word(
    "gp_fault",
    40,
    (
        Field("low", 32, "GP_TRAP: mepc; GP_WATCHDOG: 0; GP_EXIT: the exit value; GP_DMA: pc of the store to DMA_PUSH"),
        Field(
            "cause",
            5,
            "GP_TRAP: mcause's number; GP_DMA: why, the Cause of a ring, also of a push where no descriptor is",
        ),
        Field("core", 3, "of several that failed in a cycle the lowest; GP_WATCHDOG: that still ran"),
    ),
)
"""Offset of a fault's address in memmap.Space.GPSIMD."""


def cores(partitions: int) -> int:
    """Cores of an engine of `partitions`: 8 for 128, 4 for 32, 2 for 8, each with as many lanes as the others."""
    return min(CORES_MAX, max(2, partitions // 8))


def lanes(partitions: int) -> int:
    """Partitions that a core serves, L."""
    return partitions // cores(partitions)


def row_address(partition: int, byte: int) -> int:
    """Address of a byte of local partition `partition` through SBUF_ROWS."""
    return Region.SBUF_ROWS + (partition << 18) + byte


def lane_address(partition: int, byte: int, width: int) -> int:
    """Address of the same byte through SBUF_LANES, in a core of `width` lanes."""
    return Region.SBUF_LANES + byte // 4 * 4 * width + 4 * partition + byte % 4
