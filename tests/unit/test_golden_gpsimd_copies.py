"""Copies that cores of the golden machine push: what they move, when they have completed, what is refused."""

import numpy as np
import pytest

from rtl.contract.config import named
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.gpsimd import FAULT, Mailbox, Region, WaitFor, row_address
from rtl.contract.isa import Cause, Queue, Update
from rtl.contract.memmap import ADDRESS, CoreId, Space, address
from verif.checks import riscv_words as w
from verif.checks.gpsimd_program import WordImage, gp_load, gp_run, pattern
from verif.golden.machine import GoldenMachine

CFG = named("tiny")
BOX, LOCAL = Region.MAILBOX, Region.LOCAL
CODE, FIRST, RESULT = LOCAL + 0x400, LOCAL + 0x800, LOCAL + 0x100
LAST = CFG.gpsimd.local_bytes - 128
SEEDS = (None, *range(6))
T0, T1 = 5, 6


def poke(at: int, value: int) -> bytes:
    return w.load_constant(T0, at) + w.load_constant(T1, value & 0xFFFFFFFF) + w.store(2, T1, T0, 0)


def peek(at: int, to: int) -> bytes:
    return w.load_constant(T0, at) + w.immediate(0x03, 2, T1, T0, 0) + w.load_constant(T0, to) + w.store(2, T1, T0, 0)


def push(at: int) -> bytes:
    return poke(BOX + Mailbox.DMA_PUSH, at)


def wait(count: int) -> bytes:
    """Poll, so that no interrupt is needed."""
    code = poke(BOX + Mailbox.WAIT_VALUE, count) + poke(BOX + Mailbox.WAIT_COMPARE, WaitFor.DMA)
    loop = w.load_constant(T0, BOX + Mailbox.WAIT_STATUS) + w.immediate(0x03, 2, T1, T0, 0)
    return code + loop + w.branch(0, T1, 0, -len(loop))


DONE = poke(BOX + Mailbox.DONE, 0)


def copy(source: int, destination: int, row_bytes: int = 4, **more: int) -> dict[str, int]:
    return {
        "source": source,
        "destination": destination,
        "row_bytes": row_bytes,
        **dict.fromkeys(("count0", "count1", "count2"), 1),
        **more,
    }


def hbm(at: int) -> int:
    return address(Space.HBM, 0x1000 + at)


def sbuf(partition: int, byte: int) -> int:
    return address(Space.SBUF, partition << 18 | byte)


def made(code: bytes, descriptors: list[dict[str, int]], seed: int | None = None, at: int = FIRST) -> GoldenMachine:
    """Core 1 has run `code`; its descriptors lie from `at` on, HBM holds its own byte numbers."""
    machine = GoldenMachine(CFG, seed)
    words = [gp_load(pattern("src0", 0, CFG.partitions // 2, 0, 1), 3), gp_run(CODE, 2)]
    data = {0x1000: bytes(range(256)) * 4}
    machine.load(WordImage(words={Queue.GPSIMD: words}, data=data))
    local = machine.cluster.local[1]
    local[CODE - LOCAL : CODE - LOCAL + len(code)] = code
    for n, d in enumerate(descriptors):
        place = at - LOCAL + 128 * n
        local[place : place + 128] = DESCRIPTOR.pack(d).to_bytes(128, "little")
    machine.run()
    return machine


def words(machine: GoldenMachine, count: int) -> list[int]:
    return np.frombuffer(machine.cluster.local[1], "<u4")[RESULT - LOCAL >> 2 :][:count].tolist()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("at", [FIRST, Region.LOCAL_TOO + 0x800, LOCAL + LAST])
def test_a_copy_has_moved_its_bytes_when_it_counts(at: int, seed: int | None) -> None:
    """What the core stored before is what is read; what it loads behind is what was written."""
    d = copy(sbuf(4, 64), hbm(512), 8) | {"signal_address": address(Space.SEMAPHORES, 4 * 9), "signal_value": 7}
    code = poke(row_address(0, 64), 0x11223344) + push(at) + wait(1) + peek(BOX + Mailbox.DMA_DONE, RESULT)
    code += peek(BOX + Mailbox.SEMAPHORE_BASE + 36, RESULT + 4) + peek(BOX + Mailbox.DMA_FREE, RESULT + 8)
    place = at - Region.LOCAL_TOO + LOCAL if at >= Region.LOCAL_TOO else at
    machine = made(code + DONE, [d | {"signal_update": Update.ADD}], seed, place)
    assert machine.faults == [] and words(machine, 3) == [1, 7, 4]
    assert machine.hbm[0x1200:0x1208].tobytes() == bytes.fromhex("44332211ffffffff")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_waits_for_its_copies_and_a_core_for_those_it_names(seed: int | None) -> None:
    """Nine of them, more than may be under way; only the first three are waited for."""
    several = [copy(hbm(4 * n), sbuf(4 + n % 4, 1024 + 8 * n)) for n in range(9)]
    code = b"".join(push(FIRST + 128 * n) for n in range(9)) + wait(3)
    code += b"".join(peek(row_address(n, 1024 + 8 * n), RESULT + 4 * n) for n in range(3))
    machine = made(code + DONE, several, seed)
    assert machine.faults == [] and machine.queues[Queue.GPSIMD].done == 2
    assert words(machine, 3) == [0x03020100, 0x07060504, 0x0B0A0908]
    for n in range(9):
        assert machine.sbuf.bytes[4 + n % 4, 1024 + 8 * n :][:4].tolist() == list(range(4 * n, 4 * n + 4))


GOOD = copy(hbm(0), sbuf(4, 0))
REFUSED = (
    (GOOD, FIRST + 64, Cause.MISALIGNED),
    (GOOD, 0, Cause.OUT_OF_RANGE),
    (GOOD, LOCAL + CFG.gpsimd.local_bytes, Cause.OUT_OF_RANGE),
    (GOOD, Region.SHARED, Cause.OUT_OF_RANGE),
    (GOOD | {"row_bytes": 0}, FIRST, Cause.BAD_DESCRIPTOR),
    (GOOD | {"source": address(Space.PSUM, 0)}, FIRST, Cause.BAD_SPACE),
    (GOOD | {"destination": sbuf(CFG.partitions, 0)}, FIRST, Cause.OUT_OF_RANGE),
    (GOOD | {"source": 1 << CoreId.LSB}, FIRST, Cause.NO_ROUTE),
    (GOOD | {"signal_update": Update.SET, "signal_address": 3}, FIRST, Cause.BAD_SEMAPHORE),
)


@pytest.mark.parametrize(("descriptor", "at", "cause"), REFUSED)
@pytest.mark.parametrize("seed", [None, 1])
def test_what_is_refused_ends_the_run(descriptor: dict[str, int], at: int, cause: Cause, seed: int | None) -> None:
    """With the cause of the DMA, the core, and pc of the store."""
    machine = made(push(at) + w.jump(0, 0), [descriptor], seed)
    (fault,) = machine.faults
    record = FAULT.unpack(ADDRESS.unpack(fault.address)["offset"])
    pc = CODE + len(push(at)) - 4
    assert fault.cause == Cause.GP_DMA and record == {"low": pc, "cause": cause, "core": 1}


def test_copies_count_from_the_start_of_a_run() -> None:
    code = (
        peek(BOX + Mailbox.DMA_DONE, RESULT) + push(FIRST) + wait(1) + peek(BOX + Mailbox.DMA_DONE, RESULT + 4) + DONE
    )
    machine = GoldenMachine(CFG)
    loads = gp_load(pattern("src0", 0, CFG.partitions // 2, 0, 1), 3)
    machine.load(WordImage(words={Queue.GPSIMD: [loads, gp_run(CODE, 2), gp_run(CODE, 2)]}))
    local = machine.cluster.local[1]
    local[CODE - LOCAL : CODE - LOCAL + len(code)] = code
    local[FIRST - LOCAL : FIRST - LOCAL + 128] = DESCRIPTOR.pack(GOOD).to_bytes(128, "little")
    machine.run()
    assert machine.faults == [] and words(machine, 2) == [0, 1]
