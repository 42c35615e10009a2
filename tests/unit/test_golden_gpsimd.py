"""The golden programmable engine: its instructions, mailbox, windows, ends, and how it goes together with queues.

Programs are made of encoded instructions, so that no compiler is needed.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from firmware.image import Region as OutputRegion
from rtl.contract.config import load, named
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.gpsimd import (
    COPIES_MAX,
    FAULT,
    SHARED_BYTES,
    Counter,
    Mailbox,
    Region,
    WaitFor,
    cores,
    lane_address,
    row_address,
)
from rtl.contract.isa import INSTRUCTION, Cause, Opcode, Queue, Update, Wait
from rtl.contract.memmap import Space, address
from verif.checks import riscv_words as w
from verif.checks.gpsimd_program import WordImage, after, by_lane, gp_load, gp_run, gp_store, nop, pattern, then
from verif.golden.cores import GoldenCores
from verif.golden.machine import DeadlockError, Fault, GoldenMachine, RunResult
from verif.golden.sampling import SampledMachine

CFG = named("tiny")
CORES = cores(CFG.partitions)
LANES = CFG.partitions // CORES
ALL = (1 << CORES) - 1
SEEDS = (None, 1, 2, 3)
LOCAL, MAILBOX, SHARED = Region.LOCAL, Region.MAILBOX, Region.SHARED
ENTRY = LOCAL + 0x100
RESULT = LOCAL + 0x800
IMAGE = 4096  # byte of SBUF partitions
WORD = 0xFFFFFFFF
WFI, MRET, ECALL, FENCE_I = (n.to_bytes(4, "little") for n in (0x10500073, 0x30200073, 0x73, 0x100F))
A, B, C, D, T0, T1, MBX, OUT = 10, 11, 12, 13, 5, 6, 8, 9
MSTATUS, MIE, MTVEC, MEPC, MCAUSE, MTVAL, MIP, MHARTID = 0x300, 0x304, 0x305, 0x341, 0x342, 0x343, 0x344, 0xF14


# ---- instructions ----


def li(rd: int, value: int) -> bytes:
    return w.load_constant(rd, value & WORD)


def lw(rd: int, base: int, offset: int = 0) -> bytes:
    return w.immediate(0x03, 2, rd, base, offset)


def sw(rs: int, base: int, offset: int = 0) -> bytes:
    return w.store(2, rs, base, offset)


def addi(rd: int, rs: int, value: int) -> bytes:
    return w.immediate(0x13, 0, rd, rs, value)


def csrw(csr: int, rs: int) -> bytes:
    return w.immediate(0x73, 1, 0, rs, csr)


def csrr(rd: int, csr: int) -> bytes:
    return w.immediate(0x73, 2, rd, 0, csr)


def poke(where: int, value: int) -> bytes:
    """A word is stored."""
    return li(T0, where) + li(T1, value) + sw(T1, T0)


def peek(where: int, at: int) -> bytes:
    """A word is loaded and left at an address."""
    return li(T0, where) + lw(T1, T0) + li(T0, at) + sw(T1, T0)


def done(value: int = 0) -> bytes:
    return poke(MAILBOX + Mailbox.DONE, value)


def put(text: str) -> bytes:
    return b"".join(poke(MAILBOX + Mailbox.PUT, ord(c)) for c in text)


def wait(condition: WaitFor, value: int, semaphore: int = 0) -> bytes:
    """Sleep until it holds, as gp_wait does."""
    registers = {Mailbox.WAIT_SEMAPHORE: semaphore, Mailbox.WAIT_VALUE: value, Mailbox.WAIT_COMPARE: condition}
    begin = li(T0, 1 << 11) + csrw(MIE, T0)
    begin += b"".join(poke(MAILBOX + at, number) for at, number in registers.items())
    loop = li(T0, MAILBOX + Mailbox.WAIT_STATUS) + lw(T1, T0)
    return begin + loop + w.branch(1, T1, 0, 12) + WFI + w.jump(0, -len(loop) - 8)


# ---- machines ----


class Rig:
    """A program of the gpsimd queue on a golden machine, with what lies in SBUF before and other queues beside."""

    def __init__(self, words: Sequence[int], seed: int | None = None, config: str = "", **queues: Sequence[int]):
        self.cfg = load("tiny", [config] if config else [])
        self.machine = GoldenMachine(self.cfg, seed)
        beside = {Queue[name.upper()]: list(of) for name, of in queues.items()}
        self.machine.load(WordImage(words={Queue.GPSIMD: list(words), **beside}))

    def place(self, data: bytes, start: int = 0, offset: int = 0) -> None:
        """Words by lane, as GP_LOAD takes them."""
        rows = by_lane(data, LANES)
        self.machine.sbuf.bytes[start : start + LANES, offset : offset + rows.shape[1]] = rows

    def run(self) -> RunResult:
        return self.machine.run()

    def words(self, core: int, at: int, count: int = 1) -> list[int]:
        """Local memory."""
        return np.frombuffer(self.machine.cluster.local[core], "<u4")[at - LOCAL >> 2 :][:count].tolist()


def image(code: bytes, mask: int = ALL, tohost: int = 0) -> int:
    """The instruction that loads code from its place in SBUF."""
    elements = -(-len(code) // (4 * LANES))
    return gp_load(pattern("src0", 0, LANES, IMAGE, elements), mask, ENTRY - LOCAL, tohost)


def running(
    code: bytes,
    mask: int = 1,
    seed: int | None = None,
    *,
    tohost: int = 0,
    watchdog: int = 20000,
    config: str = "",
    behind: Sequence[int] = (),
    fields: dict[str, int] | None = None,
    entry: int = ENTRY,
    **queues: Sequence[int],
) -> Rig:
    """A rig with one image and one run of it."""
    run = gp_run(entry, mask, watchdog, **(fields or {}))
    rig = Rig([image(code, mask, tohost), run, *behind], seed, config, **queues)
    rig.place(code, 0, IMAGE)
    return rig


def fault_of(rig: Rig) -> tuple[Cause, dict[str, int]]:
    """The one fault of the gpsimd queue, and its address as words."""
    faults = rig.run().faults
    assert [f.queue for f in faults] == ["gpsimd"]
    offset = faults[0].address - address(Space.GPSIMD, 0)
    return faults[0].cause, FAULT.unpack(offset) if faults[0].address else {}


def result_of(code: bytes, count: int = 1, **more: int) -> list[int]:
    """What a core that ends well leaves at RESULT."""
    rig = running(code + done(), **more)  # pyright: ignore[reportArgumentType]
    assert rig.run().faults == []
    return rig.words(0, RESULT, count)


# ---- loads and stores ----


def test_words_go_to_local_memory_by_lane_and_back() -> None:
    data = np.arange(40, dtype="<u4").tobytes()
    source, target = pattern("src0", 4, LANES, 64, 10), pattern("dst", 0, LANES, 256, 10, step=2)
    back = pattern("dst", 4, LANES, 1024, 9)
    words = [gp_load(source, ALL, 4 * LANES), gp_store(target, 2, 4 * LANES), gp_store(back, 1, 8 * LANES)]
    for seed in SEEDS:
        rig = Rig(words, seed)
        rig.place(data, 4, 64)
        assert rig.run().faults == []
        sbuf = rig.machine.sbuf.bytes
        for core in range(CORES):
            assert rig.words(core, LOCAL, 40 + 2 * LANES) == [WORD] * LANES + list(range(40)) + [WORD] * LANES
        for lane in range(LANES):
            row = sbuf[lane, 256:].copy().view("<u4")
            assert row[:20:2].tolist() == list(range(lane, 40, LANES)) and set(row[1:20:2]) == {WORD}
            assert sbuf[4 + lane, 1024:1060].copy().view("<u4").tolist() == list(range(LANES + lane, 40, LANES))


def test_a_pattern_may_turn() -> None:
    source = pattern("src0", 0, LANES, 8, 3, step=-1)
    rig = Rig([gp_load(source, 1)])
    rig.place(np.arange(12, dtype="<u4").tobytes())
    assert rig.run().faults == []
    assert rig.words(0, LOCAL, 12) == [*range(8, 12), *range(4, 8), *range(4)]


SOURCE, TARGET = pattern("src0", 0, LANES, 0, 4), pattern("dst", 0, LANES, 0, 4)
HALF = {"src0": pattern("src0", 0, LANES // 2, 0, 4), "dst": pattern("dst", 0, LANES // 2, 0, 4)}
END = CFG.gpsimd.local_bytes
REFUSED = (
    (gp_load(SOURCE, 0), Cause.GP_CORES),
    (gp_load(SOURCE, 1 << CORES), Cause.GP_CORES),
    (gp_load(HALF["src0"], 1 << CORES | 1, 2), Cause.GP_CORES),  # the first of three
    (gp_load(HALF["src0"], 1, 2), Cause.BAD_PARTITION),
    (gp_load(pattern("src0", 0, 2 * LANES, 0, 4), 1), Cause.BAD_PARTITION),
    (gp_load(SOURCE | {"src0_count1": 2}, 1, 4), Cause.BAD_PATTERN),
    (gp_store(TARGET | {"dst_count3": 2}, 1), Cause.BAD_PATTERN),
    (gp_load(SOURCE, 1, 4), Cause.MISALIGNED),
    (gp_load(SOURCE, 1, END + 4), Cause.MISALIGNED),
    (gp_load(SOURCE, 1, END - 12 * LANES), Cause.OUT_OF_RANGE),
    (gp_load(SOURCE, 1, 1 << 31), Cause.OUT_OF_RANGE),
    (gp_store(TARGET, 0), Cause.GP_CORES),
    (gp_store(TARGET, 3), Cause.GP_CORES),
    (gp_store(TARGET, 1 << CORES), Cause.GP_CORES),
    (gp_store(HALF["dst"], 1, 2), Cause.BAD_PARTITION),
    (gp_store(TARGET, 1, 8), Cause.MISALIGNED),
    (gp_store(TARGET, 1, END - 12 * LANES), Cause.OUT_OF_RANGE),
    (gp_run(ENTRY, 0), Cause.GP_CORES),
    (gp_run(ENTRY, 1 << CORES), Cause.GP_CORES),
    (gp_run(ENTRY, 255), Cause.GP_CORES),
    (gp_run(ENTRY, 2), Cause.GP_NO_IMAGE),
    (gp_run(ENTRY, 3), Cause.GP_NO_IMAGE),
)


@pytest.mark.parametrize(("word", "cause"), REFUSED)
@pytest.mark.parametrize("seed", [None, 1])
def test_the_engine_refuses(word: int, cause: Cause, seed: int | None) -> None:
    """At the end of the instruction, which does nothing; nor does what is behind it."""
    rig = Rig([gp_load(SOURCE, 1, 1024), word, gp_store(TARGET, 1), nop(**then(1))], seed)
    sbuf = rig.machine.sbuf.bytes.copy()
    result = rig.run()
    assert result.faults == [Fault(queue="gpsimd", sequence=1, cause=cause, address=0)]
    assert result.retired[Queue.GPSIMD] == 1 and result.semaphores[1] == 0
    assert (rig.machine.sbuf.bytes == sbuf).all()
    assert set(rig.machine.cluster.local[0]) == {0xFF} and set(rig.machine.cluster.local[1]) == {0xFF}


def test_the_last_bytes_of_local_memory_can_be_loaded() -> None:
    rig = Rig([gp_load(SOURCE, 1, END - 16 * LANES)])
    rig.place(np.arange(16, dtype="<u4").tobytes())
    assert rig.run().faults == [] and rig.words(0, LOCAL + END - 16 * LANES, 16) == list(range(16))


def test_a_program_has_the_images_it_has_loaded_itself() -> None:
    rig = running(done())
    assert rig.run().faults == []
    rig.machine.load(WordImage(words={Queue.GPSIMD: [gp_run(ENTRY, 1)]}))
    assert fault_of(rig) == (Cause.GP_NO_IMAGE, {})


def test_without_an_engine_its_opcodes_are_illegal() -> None:
    for word in (gp_load(SOURCE, 1), gp_store(TARGET, 1), gp_run(ENTRY, 1)):
        assert fault_of(Rig([word], config="gpsimd.enabled=false")) == (Cause.ILLEGAL_OPCODE, {})


# ---- reset and memory ----


def test_a_core_starts_from_reset_with_its_number() -> None:
    save = li(OUT, RESULT) + csrr(A, MHARTID) + sw(A, OUT) + csrr(A, MTVEC) + sw(A, OUT, 4) + sw(D, OUT, 8)
    dirty = li(D, 5) + csrw(MTVEC, D) + csrw(MIE, D)
    rig = running(save + dirty + done(), ALL, behind=[gp_run(ENTRY, ALL)])
    assert rig.run().faults == []
    for core in range(CORES):
        assert rig.words(core, RESULT, 3) == [core, 0, 0]


def test_local_memory_and_shared_memory_survive_runs_and_start_as_ones() -> None:
    count = li(OUT, RESULT) + lw(A, OUT) + addi(A, A, 1) + sw(A, OUT)
    count += li(OUT, SHARED + SHARED_BYTES - 4) + lw(A, OUT) + addi(A, A, 1) + sw(A, OUT)
    rig = running(count + done(), 1, behind=[gp_run(ENTRY, 1), gp_run(ENTRY, 1)])
    assert rig.run().faults == [] and rig.words(0, RESULT) == [2] and rig.words(1, RESULT) == [WORD]
    assert rig.machine.cluster.shared == b"\xff" * (SHARED_BYTES - 4) + b"\2\0\0\0"


def test_two_addresses_name_local_memory_and_both_have_code() -> None:
    far = Region.LOCAL_TOO + RESULT - LOCAL
    assert result_of(poke(far, 77)) == [77]
    rig = running(poke(far, 78) + done(), entry=Region.LOCAL_TOO + ENTRY - LOCAL)
    assert rig.run().faults == [] and rig.words(0, RESULT) == [78]


def test_code_is_seen_afresh() -> None:
    """A run leaves the next one other code."""
    change = li(T0, ENTRY) + li(T1, int.from_bytes(addi(A, 0, 2), "little")) + sw(T1, T0) + FENCE_I
    code = addi(A, 0, 1) + li(OUT, RESULT) + sw(A, OUT) + change + done()
    assert result_of(code) == [1]
    rig = running(code, behind=[gp_run(ENTRY, 1)])
    assert rig.run().faults == [] and rig.words(0, RESULT) == [2]


def test_a_byte_a_half_and_a_word_of_shared_memory() -> None:
    code = poke(SHARED, 0x01020304) + li(T0, SHARED) + li(T1, 0xAA) + w.store(0, T1, T0, 1) + w.store(1, T1, T0, 2)
    assert result_of(code + peek(SHARED, RESULT)) == [0x00AAAA04]


def test_windows_show_the_partitions_of_the_core() -> None:
    code = b""
    for lane in range(LANES):
        code += peek(row_address(lane, 64), RESULT + 8 * lane) + peek(
            lane_address(lane, 64, LANES), RESULT + 8 * lane + 4
        )
        code += li(T0, row_address(lane, 73)) + li(T1, lane + 1) + w.store(0, T1, T0, 0)
        code += li(T0, lane_address(lane, 78, LANES)) + li(T1, 0x100 * lane) + w.store(1, T1, T0, 0)
        code += poke(lane_address(lane, 80, LANES), 0x1000 * lane)
        code += poke(row_address(lane, CFG.sbuf.partition_bytes - 4), 9)
    rig = running(code + done(), ALL)
    sbuf = rig.machine.sbuf.bytes
    sbuf[:, 64:68] = np.arange(4 * CFG.partitions, dtype=np.uint8).reshape(-1, 4)
    before = sbuf.copy()
    assert rig.run().faults == []
    for core in range(CORES):
        for lane in range(LANES):
            p = core * LANES + lane
            assert rig.words(core, RESULT + 8 * lane, 2) == before[p, 64:68].view("<u4").tolist() * 2
            before[p, 73], before[p, 78:80], before[p, 80:84] = lane + 1, (0, lane), (0, 0x10 * lane, 0, 0)
            before[p, -4:] = (9, 0, 0, 0)
    assert (sbuf == before).all()


# ---- mailbox ----


def test_the_argument_is_the_instruction() -> None:
    fields = {"src0_offset": 0x123456, "src1_step3": -3, "dst_count2": 9, "imm1": 0x1122334455667788, "imm2": 1 << 63}
    fields |= after(3, 0) | then(2, 5)
    code = b"".join(peek(MAILBOX + 4 * i, RESULT + 4 * i) for i in range(32))
    rig = running(code + done(), 2, watchdog=5000, fields=fields)
    assert rig.run().faults == []
    word = gp_run(ENTRY, 2, 5000, **fields)
    assert rig.words(1, RESULT, 32) == [word >> 32 * i & WORD for i in range(32)]


def test_registers_tell_where_one_is() -> None:
    registers = (Mailbox.CORE, Mailbox.CORES, Mailbox.LANES, Mailbox.LOCAL_BYTES, Mailbox.DMA_FREE, Mailbox.DMA_DONE)
    code = b"".join(peek(MAILBOX + at, RESULT + 4 * i) for i, at in enumerate(registers))
    rig = running(code + done(), ALL, config="gpsimd.local_bytes=16384")
    assert rig.run().faults == []
    for core in range(CORES):
        assert rig.words(core, RESULT, 6) == [core, CORES, LANES, 16384, COPIES_MAX, 0]


def test_a_load_of_what_is_only_written_gives_0() -> None:
    only = (Mailbox.DONE, Mailbox.PUT, Mailbox.DMA_PUSH, Mailbox.TRAP)
    assert result_of(b"".join(peek(MAILBOX + at, RESULT + 4 * i) for i, at in enumerate(only)), 4) == [0] * 4


def test_registers_keep_what_is_stored_until_the_run_ends() -> None:
    both = (Mailbox.WAIT_SEMAPHORE, Mailbox.WAIT_VALUE, Mailbox.TRAP_PC, Mailbox.TRAP_VALUE)
    both += (Mailbox.MTIMECMP, Mailbox.MTIMECMPH)
    first = b"".join(peek(MAILBOX + at, RESULT + 4 * i) for i, at in enumerate(both))
    store = b"".join(poke(MAILBOX + at, 0x80000001 + i) for i, at in enumerate(both))
    again = b"".join(peek(MAILBOX + at, RESULT + 24 + 4 * i) for i, at in enumerate(both))
    rig = running(first + store + again + done(), behind=[gp_run(ENTRY, 1)])
    assert rig.run().faults == []
    assert rig.words(0, RESULT, 12) == [0, 0, 0, 0, WORD, WORD, 1, *range(0x80000002, 0x80000007)]


def test_a_wait_looks_at_the_low_bits() -> None:
    count = CFG.issue.semaphores
    code = poke(MAILBOX + Mailbox.SEMAPHORE_BASE + 4 * (255 % count), 9) + poke(MAILBOX + Mailbox.WAIT_VALUE, 9)
    code += poke(MAILBOX + Mailbox.WAIT_SEMAPHORE, 0x1FF) + poke(MAILBOX + Mailbox.WAIT_COMPARE, 0xA)
    code += peek(MAILBOX + Mailbox.WAIT_STATUS, RESULT) + peek(MAILBOX + Mailbox.WAIT_COMPARE, RESULT + 4)
    assert result_of(code, 2) == [1, 2]


def test_semaphores_are_loaded_set_and_added_to() -> None:
    base, more = MAILBOX + Mailbox.SEMAPHORE_BASE, MAILBOX + Mailbox.SEMAPHORE_ADD
    last = CFG.issue.semaphores - 1
    code = poke(base + 4 * last, 0x80000000) + poke(more + 4 * last, WORD) + poke(more, -3) + poke(base + 4, 7)
    code += peek(base + 4 * last, RESULT) + peek(base, RESULT + 4) + peek(more + 4, RESULT + 8)
    rig = running(code + done())
    result = rig.run()
    assert result.faults == [] and rig.words(0, RESULT, 3) == [0x7FFFFFFF, WORD - 2, 7]
    assert (result.semaphores[0], result.semaphores[1], result.semaphores[last]) == (-3, 7, 0x7FFFFFFF)


def test_what_is_printed_is_a_cores_own() -> None:
    hart = csrr(A, MHARTID) + addi(A, A, ord("0") + 0x100) + li(T0, MAILBOX + Mailbox.PUT) + sw(A, T0)
    for seed in SEEDS:
        result = running(hart + put("ok\n") + done(), ALL, seed, behind=[gp_run(ENTRY, 1)]).run()
        assert result.printed == {0: b"0ok\n" * 2, **{core: b"%dok\n" % core for core in range(1, CORES)}}
    assert running(done()).run().printed == {}


def test_time_and_counters_go_on_with_instructions() -> None:
    time = MAILBOX + Mailbox.MTIME
    count = MAILBOX + Mailbox.COUNTERS + 8 * Counter.INSTRUCTIONS
    code = peek(time, RESULT) + peek(count, RESULT + 4) + peek(time, RESULT + 8) + peek(time + 4, RESULT + 12)
    code += peek(MAILBOX + Mailbox.COUNTERS + 8 * Counter.SLEEP, RESULT + 16) + peek(count + 4, RESULT + 20)
    first, counted, second, high, slept, upper = result_of(code, 6)
    assert first == 4 and counted > 2 and second == first + 2 * 12 and (high, slept, upper) == (0, 0, 0)


TRAPS = (
    *((w.immediate(0x03, 0, A, T0, 0), MAILBOX + at, 5) for at in (0, Mailbox.CORE, Mailbox.SEMAPHORE_BASE)),
    (w.immediate(0x03, 1, A, T0, 0), MAILBOX + 0x82, 5),
    (w.immediate(0x03, 2, A, T0, 0), MAILBOX + 0x82, 4),
    (lw(A, T0), MAILBOX + 0x9C, 5),
    (lw(A, T0), MAILBOX + Mailbox.COUNTERS + 8 * len(Counter), 5),
    (lw(A, T0), MAILBOX + Mailbox.END, 5),
    (lw(A, T0), MAILBOX + Mailbox.SEMAPHORE_BASE + 4 * CFG.issue.semaphores, 5),
    (lw(A, T0), MAILBOX + Mailbox.SEMAPHORE_ADD + 4 * CFG.issue.semaphores, 5),
    (sw(A, T0), MAILBOX + Mailbox.SEMAPHORE_BASE + 4 * CFG.issue.semaphores, 7),
    (sw(A, T0), MAILBOX + Mailbox.SEMAPHORE_ADD + 4 * CFG.issue.semaphores, 7),
    *((w.store(0, A, T0, 0), MAILBOX + at, 7) for at in (Mailbox.PUT, Mailbox.DONE, Mailbox.SEMAPHORE_ADD)),
    (w.store(1, A, T0, 0), MAILBOX + Mailbox.PUT + 1, 6),
    *((sw(A, T0), MAILBOX + at, 7) for at in (0, 124, Mailbox.CORE, Mailbox.LANES, Mailbox.MTIME, Mailbox.WAIT_STATUS)),
    *((sw(A, T0), MAILBOX + at, 7) for at in (Mailbox.DMA_DONE, Mailbox.DMA_FREE, Mailbox.COUNTERS)),
    (lw(A, T0), 0, 5),
    (sw(A, T0), LOCAL - 4, 7),
    (lw(A, T0), LOCAL + END, 5),
    (lw(A, T0), Region.LOCAL_TOO + END, 5),
    (lw(A, T0), SHARED + SHARED_BYTES, 5),
    (lw(A, T0), row_address(0, CFG.sbuf.partition_bytes), 5),
    (sw(A, T0), row_address(LANES - 1, CFG.sbuf.partition_bytes), 7),
    (lw(A, T0), row_address(LANES, 0), 5),
    (lw(A, T0), lane_address(0, CFG.sbuf.partition_bytes, LANES), 5),
    (sw(A, T0), row_address(1, 2), 6),
    *((w.immediate(0x67, 0, 0, T0, 0), at, 1) for at in (0, SHARED, row_address(0, 0), lane_address(0, 0, LANES))),
    (w.immediate(0x67, 0, 0, T0, 0), MAILBOX, 1),
)


@pytest.mark.parametrize(("instruction", "where", "cause"), TRAPS)
def test_what_nobody_may_reach_traps(instruction: bytes, where: int, cause: int) -> None:
    handler = LOCAL + 0x400
    tell = csrr(A, MCAUSE) + csrr(B, MTVAL) + li(OUT, RESULT) + sw(A, OUT) + sw(B, OUT, 4) + done()
    code = li(T0, handler) + csrw(MTVEC, T0) + li(T0, where) + instruction
    rig = running(code.ljust(handler - ENTRY, b"\0") + tell)
    assert rig.run().faults == [] and rig.words(0, RESULT, 2) == [cause, where]


# ---- ends ----


def test_an_exit_value_is_a_fault_unless_it_is_0() -> None:
    for value in (1, 0x12345678, WORD):
        for core in range(CORES):
            fault = fault_of(running(done(value), 1 << core))
            assert fault == (Cause.GP_EXIT, {"low": value, "cause": 0, "core": core})


def test_a_fault_stops_the_others_and_the_queue() -> None:
    forever = csrr(A, MHARTID) + w.branch(1, A, 0, 4 + len(done(5))) + done(5) + w.jump(0, 0)
    for seed in SEEDS:
        rig = running(forever, ALL, seed, watchdog=1 << 23, behind=[nop(**then(1))], fields=then(0))
        result = rig.run()
        where = address(Space.GPSIMD, FAULT.pack(low=5, core=0))
        assert result.faults == [Fault(queue="gpsimd", sequence=1, cause=Cause.GP_EXIT, address=where)]
        assert result.semaphores[:2] == [0, 0] and result.retired[Queue.GPSIMD] == 1


def test_firmware_tells_of_a_trap() -> None:
    code = poke(MAILBOX + Mailbox.TRAP_PC, 0x10000124) + poke(MAILBOX + Mailbox.TRAP, 0x80000007)
    assert fault_of(running(code, 2)) == (Cause.GP_TRAP, {"low": 0x10000124, "cause": 7, "core": 1})


def test_a_trap_without_a_handler() -> None:
    code = addi(A, 0, 1) + ECALL
    assert fault_of(running(code)) == (Cause.GP_TRAP, {"low": ENTRY + 4, "cause": 11, "core": 0})
    vectored = li(A, 1) + csrw(MTVEC, A) + ECALL
    assert fault_of(running(vectored)) == (Cause.GP_TRAP, {"low": ENTRY + 12, "cause": 11, "core": 0})


def test_an_entry_where_nothing_is() -> None:
    for entry in (0, SHARED, row_address(0, 0)):
        rig = running(done(), entry=entry)
        assert fault_of(rig) == (Cause.GP_TRAP, {"low": entry, "cause": 1, "core": 0})


def test_an_interrupt_without_a_handler() -> None:
    code = poke(MAILBOX + Mailbox.MTIMECMP, 0) + poke(MAILBOX + Mailbox.MTIMECMPH, 0) + li(A, 0x80) + csrw(MIE, A)
    pc = ENTRY + len(code) + 4
    enabled = w.immediate(0x73, 6, 0, 8, MSTATUS) + w.jump(0, 0)
    assert fault_of(running(code + enabled)) == (Cause.GP_TRAP, {"low": pc, "cause": 7, "core": 0})


def test_a_trap_in_the_first_instruction_of_the_handler() -> None:
    """The first of the two is told; a handler that has done something may trap again."""
    begin = li(T0, ENTRY + 0x100) + csrw(MTVEC, T0)
    code = (begin + addi(0, 0, 0) + ECALL).ljust(0x100, b"\0")
    at = ENTRY + len(begin) + 4
    illegal = b"\0\0\0\0"
    assert fault_of(running(code + illegal)) == (Cause.GP_TRAP, {"low": at, "cause": 11, "core": 0})
    nowhere = li(T0, SHARED) + csrw(MTVEC, T0) + ECALL
    assert fault_of(running(nowhere)) == (Cause.GP_TRAP, {"low": ENTRY + 12, "cause": 11, "core": 0})
    again = addi(A, A, 1) + w.branch(4, 0, A, 8) + done() + addi(B, 0, 3) + w.branch(5, A, B, 8) + ECALL + done()
    assert running(code + again).run().faults == []


@pytest.mark.parametrize(
    ("stored", "size", "offset", "exit_value"),
    [(1, 4, 0, 0), (7, 4, 0, 3), (WORD, 4, 0, WORD >> 1), (0x80000001, 4, 0, 1 << 30), (0xFF03, 1, 0, 1),
     (0x10105, 2, 0, 0x82), (1, 1, 0, 0)],
)  # fmt: skip
@pytest.mark.parametrize("region", [LOCAL, Region.LOCAL_TOO])
@pytest.mark.parametrize("named_at", [LOCAL, Region.LOCAL_TOO])
def test_a_store_to_tohost_ends_a_run(
    stored: int, size: int, offset: int, exit_value: int, region: Region, named_at: Region
) -> None:
    code = li(T0, region + 0x840) + li(T1, stored) + w.store(size.bit_length() - 1, T1, T0, offset) + w.jump(0, 0)
    rig = running(code, tohost=named_at + 0x840)
    faults = rig.run().faults
    where = address(Space.GPSIMD, FAULT.pack(low=exit_value))
    told = [Fault(queue="gpsimd", sequence=1, cause=Cause.GP_EXIT, address=where)]
    assert faults == (told if exit_value else [])
    mask = (1 << 8 * size) - 1
    assert rig.words(0, LOCAL + 0x840) == [stored & mask | WORD & ~mask]


def test_other_stores_to_tohost_do_not() -> None:
    at = LOCAL + 0x840
    code = poke(at, 0) + poke(at, 2) + poke(at - 4, 1) + poke(at + 4, 1)
    code += li(T0, at) + li(T1, 0x0101) + w.store(0, T1, T0, 1) + w.store(1, T1, T0, 2)
    for tohost in (at, 0):
        rig = running(code + done(9), tohost=tohost)
        assert fault_of(rig)[1]["low"] == 9 and rig.words(0, at) == [0x01010102]
    plain = poke(at, 1) + done(9)
    assert fault_of(running(plain))[1]["low"] == 9


def test_each_load_says_anew_where_tohost_is() -> None:
    code = poke(LOCAL + 0x840, 1) + done(9)
    first = gp_load(pattern("src0", 0, LANES, 0, 1), ALL, 0x900, LOCAL + 0x840)
    for words, ends in (
        ([first, image(code)], False),
        ([image(code, tohost=LOCAL + 0x850), first], True),
        ([image(code), first, image(code, 2)], True),
    ):
        rig = Rig([*words, gp_run(ENTRY, 1)])
        rig.place(code, 0, IMAGE)
        assert bool(rig.run().faults) != ends


def test_the_watchdog() -> None:
    forever = w.jump(0, 0)
    for seed in SEEDS:
        fault = fault_of(running(forever, ALL, seed, watchdog=1000))
        assert fault == (Cause.GP_WATCHDOG, {"low": 0, "cause": 0, "core": 0})
    but_core_0 = csrr(A, MHARTID) + w.branch(1, A, 0, 4 + len(done())) + done() + w.jump(0, 0)
    fault = fault_of(running(but_core_0, ALL, watchdog=1000))
    assert fault == (Cause.GP_WATCHDOG, {"low": 0, "cause": 0, "core": 1})
    exact = addi(A, 0, 1) * 4 + li(T0, MAILBOX) + sw(0, T0, Mailbox.DONE)
    for watchdog, late in ((5, True), (6, False), (1, True)):
        assert bool(running(exact, watchdog=watchdog).run().faults) == late


def test_without_one_of_its_own_a_run_has_the_engines_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verif.golden.gpsimd.cluster.WATCHDOG_CYCLES", 500)
    code = li(A, 300) + addi(A, A, -1) + w.branch(1, A, 0, -4) + done()
    assert fault_of(running(code, watchdog=0))[0] == Cause.GP_WATCHDOG
    assert running(code, watchdog=700).run().faults == []


def test_all_asleep_for_ever() -> None:
    """It takes no time; other queues go on before."""
    for code in (WFI + done(), wait(WaitFor.SEMAPHORE_GE, 5, 3) + done(), wait(WaitFor.NONE, 0) + done()):
        for seed in SEEDS:
            rig = running(code, 2, seed, watchdog=0, sync=[nop(**then(3))] * 3)
            fault = fault_of(rig)
            assert fault == (Cause.GP_WATCHDOG, {"low": 0, "cause": 0, "core": 1})
            assert rig.machine.semaphores[3] == 3


# ---- waits and interrupts ----


def test_wfi_needs_an_enabled_interrupt() -> None:
    code = poke(MAILBOX + Mailbox.MTIMECMPH, 0) + poke(MAILBOX + Mailbox.MTIMECMP, 0)
    assert fault_of(running(code + WFI + done()))[0] == Cause.GP_WATCHDOG
    enabled = li(T0, 1 << 7) + csrw(MIE, T0)
    assert running(code + enabled + WFI + csrr(A, MIP) + li(OUT, RESULT) + sw(A, OUT) + done()).run().faults == []


def test_time_goes_on_for_those_who_sleep_for_it() -> None:
    timer = poke(MAILBOX + Mailbox.MTIMECMP, 9001) + poke(MAILBOX + Mailbox.MTIMECMPH, 0)
    told = peek(MAILBOX + Mailbox.MTIME, RESULT)
    assert 9000 <= result_of(timer + wait(WaitFor.TIMER, 0) + told)[0] < 9100
    by_interrupt = timer + li(T0, 1 << 7) + csrw(MIE, T0) + WFI
    assert 9000 <= result_of(by_interrupt + told)[0] < 9100
    assert fault_of(running(by_interrupt + done(), watchdog=4000))[0] == Cause.GP_WATCHDOG


def test_one_sleeps_for_time_while_another_polls() -> None:
    timer = poke(MAILBOX + Mailbox.MTIMECMP, 4000) + poke(MAILBOX + Mailbox.MTIMECMPH, 0)
    sleeper = timer + wait(WaitFor.TIMER, 0) + poke(SHARED, 1) + done()
    poll = li(T0, SHARED) + lw(A, T0) + w.branch(4, A, 0, -4) + done()
    code = csrr(A, MHARTID) + w.branch(1, A, 0, 4 + len(poll)) + poll + sleeper
    for seed in SEEDS:
        assert running(code, ALL, seed).run().faults == []


def test_an_interrupt_is_taken_at_once_and_not_again_once_it_is_gone() -> None:
    handler = ENTRY + 0x200
    code = li(T0, handler) + csrw(MTVEC, T0) + li(T0, 0x800) + csrw(MIE, T0) + w.immediate(0x73, 6, 0, 8, MSTATUS)
    code += poke(MAILBOX + Mailbox.WAIT_COMPARE, WaitFor.DMA) + addi(B, 0, 1) + addi(B, B, 1)
    code += li(OUT, RESULT) + sw(C, OUT) + sw(D, OUT, 4) + sw(14, OUT, 8) + csrr(A, MIP) + sw(A, OUT, 12) + done()
    code = code.ljust(handler - ENTRY, b"\0")
    code += addi(C, C, 1) + addi(D, B, 0) + csrr(14, MCAUSE) + li(T0, MAILBOX) + sw(0, T0, Mailbox.WAIT_COMPARE) + MRET
    assert result_of(code, 4) == [1, 0, 0x8000000B, 0]


def test_the_conditions_of_a_semaphore() -> None:
    status, base = MAILBOX + Mailbox.WAIT_STATUS, MAILBOX + Mailbox.SEMAPHORE_BASE
    code = poke(MAILBOX + Mailbox.WAIT_SEMAPHORE, 2) + poke(MAILBOX + Mailbox.WAIT_VALUE, -1)
    expected = list[int]()
    for compare in (WaitFor.SEMAPHORE_GE, WaitFor.SEMAPHORE_EQ, WaitFor.NONE):
        code += poke(MAILBOX + Mailbox.WAIT_COMPARE, compare)
        for value in (-2, -1, 0):
            code += poke(base + 8, value) + peek(status, RESULT + 4 * len(expected))
            holds = {WaitFor.SEMAPHORE_GE: value >= -1, WaitFor.SEMAPHORE_EQ: value == -1}.get(compare, False)
            expected.append(int(holds))
    assert result_of(code, 9) == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("polls", [False, True])
def test_firmware_and_a_queue_wait_for_each_other(seed: int | None, polls: bool) -> None:
    """Three rounds: the queue adds to semaphore 4, the core to 5."""
    here, there = 4, 5
    code = b""
    for n in range(1, 4):
        at = MAILBOX + Mailbox.SEMAPHORE_BASE + 4 * here
        poll = li(T0, at) + li(T1, n) + lw(A, T0) + w.branch(4, A, T1, -4)
        code += poll if polls else wait(WaitFor.SEMAPHORE_GE, n, here)
        code += poke(MAILBOX + Mailbox.SEMAPHORE_ADD + 4 * there, 1)
    sync = [nop(**after(there, n, Wait.EQ), **then(here)) for n in range(3)]
    rig = running(code + done(), 1, seed, sync=sync, behind=[nop(**then(6))], fields=then(7, 9, Update.SET))
    result = rig.run()
    assert result.faults == [] and result.semaphores[4:8] == [3, 3, 1, 9]


def test_what_is_behind_a_run_comes_when_it_has_ended() -> None:
    code = wait(WaitFor.SEMAPHORE_GE, 1, 4) + poke(row_address(0, 0), 5) + done()
    store = gp_store(pattern("dst", 0, LANES, 512, 1), 1, RESULT - LOCAL)
    for seed in SEEDS:
        rig = running(poke(RESULT, 1) + code + poke(RESULT, 2), 1, seed, behind=[store], sync=[nop(**then(4))])
        assert rig.run().faults == []
        assert rig.machine.sbuf.bytes[0, 512] == 1


def test_a_queue_that_nobody_serves_is_still_a_deadlock() -> None:
    rig = running(done(), sync=[nop(**after(9, 1))])
    with pytest.raises(DeadlockError, match="queue sync waits at instruction 0"):
        rig.run()


# ---- machines of several cores, and for some results ----


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_of_two_cores_wait_for_each_others_copies(seed: int | None) -> None:
    """Each polls SBUF for what a ring of the other copies there, released when the own program says so."""
    at, go = row_address(0, 3 * 1024), 3
    poll = poke(MAILBOX + Mailbox.SEMAPHORE_ADD + 4 * go, 1) + li(T0, at) + lw(A, T0) + w.branch(4, A, 0, -4)
    code = poll + li(OUT, RESULT) + sw(A, OUT) + done()
    machines = GoldenCores(CFG, (0, 1), seed)
    images = dict[int, WordImage]()
    for core in (0, 1):
        other = address(Space.SBUF, 3 * 1024, core_id=1 - core)
        copy = {"source": address(Space.SBUF, 2048, core_id=core), "destination": other, "row_bytes": 4}
        copy |= {"count0": 1, "count1": 1, "count2": 1, "signal_address": address(Space.SEMAPHORES, 0, core_id=core)}
        trigger = INSTRUCTION.pack({"opcode": Opcode.DMA_TRIGGER, "imm1": 1, **after(go, 1)})
        words = {Queue.GPSIMD: [image(code), gp_run(ENTRY, 1, 20000)], Queue.SYNC: [trigger]}
        images[core] = WordImage(words=words, descriptors=[[DESCRIPTOR.pack(copy)]])
    machines.load(images)
    for core, machine in machines.machines.items():
        machine.sbuf.bytes[:LANES, IMAGE : IMAGE + by_lane(code, LANES).shape[1]] = by_lane(code, LANES)
        machine.sbuf.bytes[0, 2048:2052] = (core + 1, 0, 0, 0)
    results = machines.run()
    for core, machine in machines.machines.items():
        assert results[core].faults == [] and machine.cluster.local[0][0x800:0x804] == bytes((2 - core, 0, 0, 0))


def test_in_a_set_of_cores_the_watchdog_comes_last() -> None:
    machines = GoldenCores(CFG, (0, 1))
    code = wait(WaitFor.SEMAPHORE_GE, 1, 3) + done()
    words = {Queue.GPSIMD: [image(code), gp_run(ENTRY, 1)]}
    machines.load({0: WordImage(words=words), 1: WordImage(words={Queue.SYNC: [nop(**then(1))]})})
    machine = machines.machines[0]
    machine.sbuf.bytes[:LANES, IMAGE : IMAGE + by_lane(code, LANES).shape[1]] = by_lane(code, LANES)
    results = machines.run()
    assert [f.cause for f in results[0].faults] == [Cause.GP_WATCHDOG] and results[1].semaphores[1] == 1


def test_a_sampled_machine_runs_all_of_a_program_with_firmware() -> None:
    machine = SampledMachine(CFG, 1, 0)
    code = poke(row_address(0, 2048), 77) + put("x") + done()
    copy = {"source": address(Space.SBUF, 2048), "destination": 4096, "row_bytes": 4, "count0": 1, "count1": 1}
    copy |= {"count2": 1, "signal_address": address(Space.SEMAPHORES, 0)}
    trigger = INSTRUCTION.pack({"opcode": Opcode.DMA_TRIGGER, "imm1": 1})
    region = OutputRegion(space=Space.HBM, offset=4096, shape=(1, 1), dtype="uint32", name="y")
    words = {Queue.GPSIMD: [image(code), gp_run(ENTRY, 1), trigger]}
    machine.load(WordImage(words=words, descriptors=[[DESCRIPTOR.pack(copy)]], outputs={"y": region}))
    machine.sbuf.bytes[:LANES, IMAGE : IMAGE + by_lane(code, LANES).shape[1]] = by_lane(code, LANES)
    result = machine.run()
    assert result.faults == [] and result.printed == {0: b"x"} and result.outputs["y"].tolist() == [[77]]
    assert machine.tiles == 1 and machine.kept == machine.steps and machine.chosen["y"].tolist() == [0]


# ---- barrier ----


def barrier() -> bytes:
    """As gp_barrier does it: D counts them."""
    return addi(D, D, 1) + poke(MAILBOX + Mailbox.BARRIER, 1) + _until_passed()


def _until_passed() -> bytes:
    set_value = li(T0, MAILBOX + Mailbox.WAIT_VALUE) + sw(D, T0)
    compare = poke(MAILBOX + Mailbox.WAIT_COMPARE, WaitFor.BARRIER) + li(T0, 1 << 11) + csrw(MIE, T0)
    loop = li(T0, MAILBOX + Mailbox.WAIT_STATUS) + lw(T1, T0)
    return set_value + compare + loop + w.branch(1, T1, 0, 12) + WFI + w.jump(0, -len(loop) - 8)


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_cores_meet(seed: int | None) -> None:
    """Each writes its number, meets the others, and reads what its neighbour has written."""
    rounds, code = 3, csrr(A, MHARTID)
    mine = w.immediate(0x13, 1, B, A, 2) + li(C, SHARED) + w.register(0, 0, B, B, C)
    other = (
        w.immediate(0x13, 4, C, A, 1) + w.immediate(0x13, 1, C, C, 2) + li(OUT, SHARED) + w.register(0, 0, C, C, OUT)
    )
    for n in range(rounds):
        code += mine + addi(T0, A, 16 * n + 16) + sw(T0, B)
        code += barrier() + other + lw(T1, C) + li(OUT, RESULT) + sw(T1, OUT, 4 * n) + barrier()
    code += peek(MAILBOX + Mailbox.BARRIER, RESULT + 0x40)
    rig = running(code + done(), ALL, seed)
    assert rig.run().faults == []
    for core in range(CORES):
        assert rig.words(core, RESULT, rounds) == [16 * n + 16 + (core ^ 1) for n in range(rounds)]
        assert rig.words(core, RESULT + 0x40) == [2 * rounds]


def test_a_core_that_has_ended_or_is_not_in_the_run_holds_nobody_up() -> None:
    alone = barrier() * 2 + peek(MAILBOX + Mailbox.BARRIER, RESULT) + done()
    rig = running(alone, 2)
    assert rig.run().faults == [] and rig.words(1, RESULT) == [2]
    early = barrier() + csrr(A, MHARTID) + w.branch(1, A, 0, 4 + len(done())) + done() + alone
    for seed in SEEDS:
        rig = running(early, ALL, seed)
        assert rig.run().faults == []
        assert rig.words(0, RESULT) == [WORD] and rig.words(1, RESULT) == [3]


def test_a_core_that_arrives_twice_is_there_once() -> None:
    """Core 0 arrives twice before core 1 does once, then once more."""
    at = MAILBOX + Mailbox.BARRIER
    twice = poke(at, 1) * 2 + poke(SHARED, 1) + peek(at, RESULT) + wait(WaitFor.BARRIER, 1) + poke(at, 1)
    twice += wait(WaitFor.BARRIER, 2) + done()
    poll = li(T0, SHARED) + lw(A, T0) + w.branch(4, A, 0, -4) + poke(at, 1) + wait(WaitFor.BARRIER, 1)
    later = poll + peek(at, RESULT) + poke(at, 1) + wait(WaitFor.BARRIER, 2) + peek(at, RESULT + 4) + done()
    code = csrr(A, MHARTID) + w.branch(1, A, 0, 4 + len(twice)) + twice + later
    rig = running(code, ALL)
    assert rig.run().faults == []
    assert rig.words(0, RESULT) == [0] and rig.words(1, RESULT + 4) == [2]


def test_a_core_that_does_not_come_keeps_the_others() -> None:
    code = csrr(A, MHARTID) + w.branch(0, A, 0, 4 + len(WFI)) + WFI + barrier() + done()
    assert fault_of(running(code, ALL)) == (Cause.GP_WATCHDOG, {"low": 0, "cause": 0, "core": 0})
