"""VectorUnit: random instructions of Zve32x with every vtype leave what they leave in the golden hart."""

import random

import cocotb

from verif.bench import Run
from verif.benches.gpsimd.vector_driver import VSTART, VXRM, VXSAT, VectorDriver
from verif.benches.gpsimd.vector_unit_top import DEVICE, RAM, RAM_BYTES
from verif.checks.coverage import Coverage
from verif.checks.vector_words import random_vector_word, vtypes
from verif.golden.riscv.vector.decode import decode_vector
from verif.golden.riscv.vector.table import INTEGER, MULTIPLY, UNARY

_FAULTS = (
    "a half is never rounded up",
    "a mask may be overwritten",
    "a mask of vectors is not looked at",
    "a permutation finds the word beside",
    "a row that is stored lacks what turned around",
    "a trap inside a load of vectors loses vstart",
    "an element of a vector need not be aligned",
    "the tail of a vector is written",
    "viota counts the element itself",
    "vl is one element short",
    "vstart is not looked at",
    "vwmaccsu takes its scalar as unsigned",
    "no saturation is ever told",
)

RUNS = (
    Run("vector_unit", options={"lanes": 4}, faults=_FAULTS),
    Run("vector_unit", options={"lanes": 8}, seeds=(1,)),
    *(Run("vector_unit", options={"lanes": n}, seeds=tuple(range(100, 120)), regress=True) for n in (4, 8, 16)),
)

_INSTRUCTIONS = 8000
_CAUSES = (2, 4, 5, 6, 7)
_KINDS = ("unit", "mask", "whole", "strided", "indexed")
_NAMES = (
    *((name, form) for table in (INTEGER, MULTIPLY) for name, forms in table.values() for form in forms),
    *((name, "") for table in UNARY.values() for name in table.values()),
    *((f"{verb} {kind}", "x") for verb in ("load", "store") for kind in _KINDS),
    *(("vmv.v", form) for form in "vxi"),
    *(("load first", "x"), ("vmv.s.x", "x"), ("vrgatherei16", "v"), ("vmvr", "")),
    *(("vsetvli", "x"), ("vsetivli", "i"), ("vsetvl", "x")),
)
COVER = Coverage(
    "gpsimd.vector_unit",
    [
        *(f"{name}, {form}" for name, form in _NAMES),
        *(f"vtype {vtype:#x}" for vtype in vtypes()),
        *(f"trap {cause}" for cause in _CAUSES),
        *(f"vxrm {mode}" for mode in range(4)),
        "vl 0",
        "vl 1",
        "vl some",
        "vl VLMAX",
        "resumes",
        "vl shrinks",
        "saturates",
    ],
)


def _vsetvli(vtype: int) -> int:
    """vsetvli x0, x5, vtype"""
    return vtype << 20 | 5 << 15 | 7 << 12 | 0x57


async def _random_registers(driver: VectorDriver) -> None:
    """All registers from memory: anything, small numbers, or those at the end of a range."""
    rng, size = driver.random, 8 * driver.line_bytes
    for register in (0, 8, 16, 24):
        kind, values = rng.random(), rng.randbytes(size)
        if kind < 0.3:
            width = rng.choice((1, 2, 4))
            values = b"".join(rng.randrange(64).to_bytes(width, "little") for _ in range(size // width))
        elif kind < 0.4:
            values = bytes(rng.choice((0, 0, 0x7F, 0x80, 0xFF, 1)) for _ in range(size))
        for ram in (driver.ram, driver.golden_ram):
            ram[:size] = values
        await driver.execute(7 << 29 | 1 << 25 | 8 << 20 | 5 << 15 | 6 << 12 | register << 7 | 7, RAM, 0)  # vl8re32.v


def _address(rng: random.Random, register_bytes: int) -> int:
    kind = rng.random()
    if kind < 0.7:
        place = RAM + rng.randrange(RAM_BYTES - 8 * register_bytes)
    elif kind < 0.85:
        place = RAM + RAM_BYTES - rng.randrange(8 * register_bytes)
    elif kind < 0.95:
        place = DEVICE + rng.randrange(0x100)
    else:
        place = rng.getrandbits(32)
    return place & ~3 if rng.random() < 0.85 else place


def _operands(driver: VectorDriver, word: int) -> tuple[int, int]:
    """For x[rs1] and x[rs2]."""
    rng = driver.random
    if word & 0x5F == 7:
        far = rng.choice((0, 1, 2, 4, 4, 8, 12, 36, -4, -8, 1 << 20, rng.getrandbits(32)))
        return _address(rng, driver.line_bytes), far & 0xFFFFFFFF
    return rng.choice((rng.getrandbits(32), rng.randrange(40), 0x7FFFFFFF, 0x80000000)), rng.choice(vtypes())


async def _configure(driver: VectorDriver) -> int:
    """A vtype and a vl; gives log2 of LMUL."""
    rng = driver.random
    vtype = rng.choice(vtypes())
    vl = rng.choice((0, 1, rng.randrange(20), rng.randrange(600), 1 << 20))
    await driver.execute(_vsetvli(vtype), vl, 0)
    state = driver.hart.vector
    most = 32 * driver.lanes >> 3 + (vtype >> 3 & 7)
    lmul = (vtype & 7) - 8 if vtype & 4 else vtype & 7
    most = most << lmul if lmul >= 0 else most >> -lmul
    COVER.hit(f"vtype {vtype:#x}")
    COVER.hit({0: "vl 0", 1: "vl 1", most: "vl VLMAX"}.get(state.vl, "vl some"))
    return lmul


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(stalls=[0.0, 0.4])
async def does_what_golden_does(dut, stalls: float) -> None:
    driver = VectorDriver(dut, stalls)
    rng, state = driver.random, driver.hart.vector
    await driver.start()
    lmul = 0
    for n in range(_INSTRUCTIONS):
        if n % 40 == 0:
            await _random_registers(driver)
        if n % 12 == 0 or (state.vtype >> 31 and rng.random() < 0.7):
            lmul = await _configure(driver)
        if rng.random() < 0.05:
            await driver.write_csr(VXRM, rng.randrange(8))
            await driver.write_csr(VXSAT, rng.randrange(2))
        if state.vstart and rng.random() < 0.5:
            await driver.write_csr(VSTART, 0)
        elif rng.random() < 0.03:
            await driver.write_csr(VSTART, rng.randrange(24))
        word = random_vector_word(rng, lmul)
        vl, vstart, vxsat = state.vl, state.vstart, state.vxsat
        want = await driver.execute(word, *_operands(driver, word), 0 if rng.random() < 0.01 else 3)
        if want.trap:
            COVER.hit(f"trap {want.cause}")
        else:
            instruction = decode_vector(word)
            assert instruction
            COVER.hit(f"{instruction.name}, {instruction.form}")
            COVER.hit(f"vxrm {state.vxrm}")
            COVER.when(vstart and word & 0x7F == 7, "resumes")
            COVER.when(word & 0x7F == 7 and state.vl < vl, "vl shrinks")
            COVER.when(state.vxsat > vxsat, "saturates")
        if rng.random() < 0.3:
            await driver.compare_csrs()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def takes_the_cycles_it_says(dut) -> None:
    """Of instructions on `n` registers, and of loads and stores of rows."""
    driver = VectorDriver(dut)
    driver.slowly = 0
    await driver.start()
    await _random_registers(driver)
    places = (driver.line_bytes // 4).bit_length() - 1  # log2 of elements of a register
    for lmul, n in enumerate((1, 2, 4, 8)):
        await driver.execute(_vsetvli(2 << 3 | lmul), 1 << 20, 0)
        await driver.execute(0x0284_0857, 0, 0)  # vadd.vv v16, v8, v8
        assert driver.cycles_taken == n + 2, driver.cycles_taken
        await driver.execute(0x6284_0C57, 0, 0)  # vmseq.vv v24, v8, v8
        assert driver.cycles_taken == n + 3, driver.cycles_taken
        await driver.execute(0x0284_2C57, 0, 0)  # vredsum.vs v24, v8, v8
        assert driver.cycles_taken == n + 4 + places, driver.cycles_taken
        await driver.execute(0x0202_E407, RAM, 0)  # vle32.v v8, (x5)
        rows = driver.cycles_taken
        await driver.execute(0x0202_E427, RAM, 0)
        assert (rows, driver.cycles_taken) == (n + 1, n + 1), (rows, driver.cycles_taken)


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
