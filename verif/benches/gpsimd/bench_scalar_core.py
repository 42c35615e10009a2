"""ScalarCore: every instruction that retires is the golden hart's, under stalls, traps and interrupts."""

import itertools
from collections import Counter

import cocotb
import numpy as np

from rtl.contract.gpsimd import Counter as gpsimd
from verif.agents.bench import manifest
from verif.bench import Run, noticed_by
from verif.benches.gpsimd.scalar_core_top import DEVICE, RAM, RAM_BYTES
from verif.benches.gpsimd.scalar_driver import TOHOST, ScalarDriver
from verif.benches.gpsimd.soup import CODE_BYTES, patches, soup
from verif.checks.coverage import Coverage
from verif.checks.riscv_program import random_program
from verif.checks.riscv_words import branch, jump

_FAULTS = (
    "a loaded value is used a cycle early",
    "a quotient by 0 has a sign",
    "a remainder is never negative",
    "a short instruction's link is that of a long one",
    "lh extends with zeros",
    "mepc is the address behind a trap",
    "mulhsu takes its second operand as signed",
    *noticed_by(
        "programs_end/stalls=0.0",
        "a branch compares signed numbers only",
        "a loop is never left",
        "c.jalr does not link",
        "mie is not looked at",
    ),
    *noticed_by("sleeps_when_loads_are_answered", "a core sleeps although a load is under way"),
    *noticed_by("code_is_new_behind_fence_i/stalls=0.4", "fence.i leaves the lines of code that are kept"),
)

RUNS = (
    Run("scalar_core", options={"line_bits": 128}, faults=_FAULTS),
    Run("scalar_core", options={"line_bits": 512, "vectors": False}, regress=True),
    *(
        Run(
            "scalar_core", options={"line_bits": bits}, seeds=tuple(range(100, 170)), regress=True
        )  # a million instructions
        for bits in (128, 256, 512)
    ),
)

_KINDS = {
    0x03: "load", 0x0F: "fence", 0x13: "immediate", 0x17: "auipc", 0x23: "store", 0x33: "register", 0x37: "lui",
    0x63: "branch", 0x67: "jalr", 0x6F: "jal", 0x73: "system",
    0x07: "vector load", 0x27: "vector store", 0x57: "vector",
}  # fmt: skip
COVER = Coverage(
    "gpsimd.scalar_core",
    [
        *_KINDS.values(),
        *(f"16 bits, quadrant {q}, funct3 {f}" for q in range(3) for f in range(8)),
        *(f"trap {c}" for c in (1, 2, 3, 4, 5, 6, 7, 11)),
        *(f"interrupt {c}" for c in (3, 7, 11)),
        *(f"{name} by 0" for name in ("div", "divu", "rem", "remu")),
        *(f"product {n}" for n in range(4)),
        "instruction of 32 bits across lines",
    ],
)
_RETIRE = 2  # cycles from the execute stage
_PROGRAMS, _INSTRUCTIONS = 6, 600
_DIVIDES = {4: "div", 5: "divu", 6: "rem", 7: "remu"}


def _place(rng: np.random.Generator) -> int:
    """For RAM: anywhere but around the device."""
    return RAM_BYTES * int(rng.choice([rng.integers(1, DEVICE // RAM_BYTES), rng.integers(0x5000, 0xFFFF)]))


def _cover(told, line_bytes: int) -> None:
    word = told.insn
    if told.trap:
        COVER.hit(f"trap {told.cause}")
    elif word & 3 != 3:
        COVER.hit(f"16 bits, quadrant {word & 3}, funct3 {word >> 13 & 7}")
    else:
        COVER.hit(_KINDS[word & 127])
        COVER.when(told.pc_rdata % line_bytes == line_bytes - 2, "instruction of 32 bits across lines")
        funct3 = word >> 12 & 7
        if word & 127 == 0x33 and word >> 25 == 1:
            if funct3 < 4:
                COVER.hit(f"product {funct3}")
            else:
                COVER.when(told.rs2_rdata == 0, f"{_DIVIDES[funct3]} by 0")
    if told.intr and not told.trap:
        COVER.hit(f"interrupt {told.cause & 31}")


@cocotb.test(timeout_time=1000, timeout_unit="us")
@cocotb.parametrize(stalls=[0.0, 0.4])
async def code_is_new_behind_fence_i(dut, stalls: float) -> None:
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    driver = ScalarDriver(dut, rng, patches(rng, RAM, RAM_BYTES), stalls, 0)
    await driver.start()
    await driver.run(1500, patched=True)


@cocotb.test(timeout_time=2000, timeout_unit="us")
@cocotb.parametrize(stalls=[0.0, 0.4])
async def programs_end(dut, stalls: float) -> None:
    """Programs that compute, call and trap in order, and tell when they are done."""
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    for _ in range(6):
        seed = int(rng.integers(1 << 31))
        at = _place(rng)
        code = random_program(seed, 150, at, at + CODE_BYTES, 2048, at + TOHOST, interrupts=True)
        ram = bytearray(code.ljust(RAM_BYTES, b"\0"))
        driver = ScalarDriver(dut, rng, ram, stalls, 0.01, at)
        await driver.start()
        await driver.run(20_000, patched=True)
        assert driver.done, f"program {seed} did not end in 20,000 instructions"


@cocotb.test(timeout_time=200, timeout_unit="us")
async def sleeps_when_loads_are_answered(dut) -> None:
    """Nothing can wake it then; the driver sees that no load is under way."""
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    words = [0x100087B7, 0x0007A303, 0x10500073]  # lui x15, data; lw x6, 0(x15); wfi
    ram = bytearray(b"".join(w.to_bytes(4, "little") for w in words).ljust(RAM_BYTES, b"\0"))
    for _ in range(8):
        driver = ScalarDriver(dut, rng, bytearray(ram), 0.9, 0)
        await driver.start()
        await driver.run(3)
        assert driver.retired == 2 and dut.waits.value == 1, f"{driver.retired} instructions, and it does not sleep"


@cocotb.test(timeout_time=200, timeout_unit="us")
async def takes_the_cycles_it_says(dut) -> None:
    """Cycles from one instruction to the next, where memory answers at once and code is kept."""
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    words = [
        0x100087B7,  # lui x15, data
        0x00200293,  # li x5, 2
        0x0007A303,  # loop: lw x6, 0(x15)
        0x00130313,  # addi x6, x6, 1
        0x0007A303,  # lw x6, 0(x15)
        0x00000013,  # nop
        0x00130313,  # addi x6, x6, 1
        0x025303B3,  # mul x7, x6, x5
        0x00138393,  # addi x7, x7, 1
        0x025343B3,  # div x7, x6, x5
        0x00138393,  # addi x7, x7, 1
        0x00000463,  # beq x0, x0, over the next
        0x00000013,
        0x0080006F,  # j over the next
        0x00000013,
        0xFFF28293,  # addi x5, x5, -1
        0xFC0294E3,  # bne x5, x0, loop
        0x00000013,
    ]
    want = [2, 2, 1, 1, 1, 1, 2, 18, 1, 1, 3, 2, 1, 3]  # from the branch to the loop, through it, and out of it
    ram = bytearray(b"".join(w.to_bytes(4, "little") for w in words).ljust(RAM_BYTES, b"\0"))
    driver = ScalarDriver(dut, rng, ram, 0, 0)
    await driver.start()
    await driver.run(2 + 2 * 13 + 1)
    gaps = [b - a for a, b in itertools.pairwise(driver.cycles[2 + 12 :])]
    assert gaps == want, f"cycles between instructions are {gaps}"
    first, last = driver.cycles[2 + 12] - _RETIRE, driver.cycles[-1] - _RETIRE
    states = Counter(driver.states[first:last])
    lost = {gpsimd.BRANCH: 6, gpsimd.LOAD: 1, gpsimd.UNIT: 18}
    assert states == {gpsimd.BUSY: len(want), **lost}, f"cycles are {states}"


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(at=[RAM, 0xEFFF_0000], place=[0x800, 0xF000])
async def asks_for_lines_ahead_and_keeps_them(dut, at: int, place: int) -> None:
    """Straight code, then a loop of seven lines: an instruction a cycle, and each line is asked for once."""
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    add, count = 0x00130313, 0x00300293  # addi x6, x6, 1; li x5, 3
    driver = ScalarDriver(dut, rng, bytearray(RAM_BYTES), 0, 0, at)
    line = driver.line_bytes // 4
    straight, body = 16 * line - 1, 6 * line
    words = [add] * straight + [count] + [add] * body + [0xFFF28293]  # addi x5, x5, -1
    code = b"".join(word.to_bytes(4, "little") for word in words) + branch(1, 5, 0, -4 * (body + 1)) + jump(0, 0)
    driver.ram[:4], driver.ram[place : place + len(code)] = jump(0, place), code
    driver.hart = driver.golden(driver.ram)
    await driver.start()
    await driver.run(1 + straight + 1 + 3 * (body + 2) + 1)
    gaps = [b - a for a, b in itertools.pairwise(driver.cycles[1:])]
    loop = [1] * (body + 1)
    assert gaps == [1] * (straight + 1) + loop + [2] + loop + [2] + loop + [3], gaps
    assert driver.asked_lines == 2 + 16 + 7 + 2, f"{driver.asked_lines} lines are asked for"


@cocotb.test(timeout_time=4000, timeout_unit="us")
@cocotb.parametrize(stalls=[0.0, 0.4], interrupts=[0.003, 0.03])
async def follows_golden(dut, stalls: float, interrupts: float) -> None:
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    for _ in range(_PROGRAMS):
        at = _place(rng)
        driver = ScalarDriver(dut, rng, soup(rng, at, RAM_BYTES), stalls, interrupts, at)
        driver.on_retired.append(lambda told, line=driver.line_bytes: _cover(told, line))
        await driver.start()
        await driver.run(_INSTRUCTIONS)
        driver.compare_memory()


@cocotb.test()
async def covered(dut) -> None:
    COVER.rule_out(True, *(f"16 bits, quadrant {q}, funct3 {f}" for q, f in ((0, 1), (0, 3), (0, 4), (0, 5), (0, 7))))
    COVER.rule_out(True, *(f"16 bits, quadrant 2, funct3 {f}" for f in (1, 3, 5, 7)))
    COVER.rule_out(not manifest().options.get("vectors", True), "vector", "vector load", "vector store")
    COVER.require_all()
