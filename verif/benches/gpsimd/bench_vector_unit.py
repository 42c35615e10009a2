"""VectorUnit: random instructions of Zve32x with every vtype leave what they leave in the golden hart."""

import random

import cocotb

from verif.bench import Run, noticed_by
from verif.benches.gpsimd.vector_driver import VSTART, VXRM, VXSAT, VectorDriver
from verif.benches.gpsimd.vector_unit_top import DEVICE, RAM, RAM_BYTES
from verif.checks.coverage import Coverage
from verif.checks.vector_words import random_vector_word, vtypes

_FAULTS = (
    "a half is never rounded up",
    "a mask is taken before it is there",
    "a mask may be overwritten",
    "a mask of vectors is not looked at",
    "a permutation finds the word beside",
    "a row that is stored lacks what turned around",
    "a lane's word may lie across two",
    "two lanes have a bank at once",
    "a step of vectors does not wait for what it reads",
    "a trap inside a load of vectors loses vstart",
    "an element of a vector need not be aligned",
    "the tail of a vector is written",
    "viota counts the element itself",
    "vl is one element short",
    "vstart is not looked at",
    "no saturation is ever told",
    *noticed_by("keeps_the_order_of_what_meets/stalls=0.0", "a load of rows passes a store to them"),
)

RUNS = (
    Run("vector_unit", options={"lanes": 4}, faults=_FAULTS),
    Run("vector_unit", options={"lanes": 8}, seeds=(1,), regress=True),
    *(Run("vector_unit", options={"lanes": n}, seeds=tuple(range(100, 150)), regress=True) for n in (4, 8, 16)),
)

_INSTRUCTIONS = 3000
_CAUSES = (2, 4, 5, 6, 7)
_SETS = ("vsetvli", "vsetvli again", "vsetvl", "vsetivli")  # by the two upper bits
COVER = Coverage(
    "gpsimd.vector_unit",
    [
        *_SETS,
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
        "a load of what is being stored",
        "a store to what is being loaded",
        "lookups with one that is none",
        *(f"lookups, {kind}" for kind in ("own bank", "any", "few words")),
    ],
)


def _vsetvli(vtype: int) -> int:
    """vsetvli x0, x5, vtype"""
    return vtype << 20 | 5 << 15 | 7 << 12 | 0x57


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
    driver.overlap = 0.7
    rng, state = driver.random, driver.hart.vector
    await driver.start()
    lmul = 0
    for n in range(_INSTRUCTIONS):
        if n % 40 == 0:
            await driver.random_registers()
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
            COVER.hit(f"vxrm {state.vxrm}")
            COVER.when(word & 0x707F == 0x7057, _SETS[word >> 30])
            COVER.when(vstart and word & 0x7F == 7, "resumes")
            COVER.when(word & 0x7F == 7 and state.vl < vl, "vl shrinks")
            COVER.when(state.vxsat > vxsat, "saturates")
        if rng.random() < 0.1:
            await driver.compare_csrs()
    await driver.settle()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def ends_at_the_first_fault(dut) -> None:
    """vle8ff, vle16ff and vle32ff that reach the end of memory: vl becomes the number of what is there."""
    driver = VectorDriver(dut)
    driver.overlap = 0.5
    await driver.start()
    for size, width in enumerate((0, 5, 6)):
        for there in range(1, 9):
            await driver.execute(_vsetvli(size << 3), driver.lanes, 0)
            word = 1 << 25 | 16 << 20 | 5 << 15 | width << 12 | 8 << 7 | 7
            await driver.execute(word, RAM + RAM_BYTES - (there << size), 0)
            COVER.when(driver.hart.vector.vl < driver.lanes, "vl shrinks")
            await driver.compare_csrs()


def _near_word(rng: random.Random, lmul: int) -> int:
    """A load, a store or an instruction of arithmetic on four groups of registers, so that one meets the others."""
    vd, vs1, vs2 = (
        8 * rng.randrange(4) + (rng.randrange(8 >> lmul) << lmul if rng.random() < 0.2 else 0) for _ in range(3)
    )
    vm = int(rng.random() < 0.7 or vd == 0)
    kind = rng.random()
    if kind < 0.6:  # vle32, vse32
        return vm << 25 | 5 << 15 | 6 << 12 | vd << 7 | (0x27 if kind < 0.3 else 0x07)
    if kind < 0.9:
        return rng.choice((0x00, 0x04, 0x0A, 0x0B)) << 26 | vm << 25 | vs2 << 20 | vs1 << 15 | vd << 7 | 0x57
    return rng.choice((0x18, 0x1A)) << 26 | 1 << 25 | vs2 << 20 | vs1 << 15 | vd << 7 | 0x57  # to a mask


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(stalls=[0.0, 0.4])
async def keeps_the_order_of_what_meets(dut, stalls: float) -> None:
    """Instructions that overlap, on few registers and few bytes."""
    driver = VectorDriver(dut, stalls)
    driver.overlap, driver.slowly = 1.0, 0.05
    rng, size = driver.random, driver.line_bytes
    await driver.start()
    for _ in range(120):
        await driver.random_registers()
        lmul = rng.randrange(4)
        most = driver.lanes << lmul
        vl = rng.choice((most, most, rng.randrange(most + 1)))
        await driver.execute(_vsetvli(2 << 3 | lmul), vl, 0)
        behind: list[tuple[bool, int]] = []
        for _ in range(16):
            word = _near_word(rng, lmul)
            address = RAM + 4 * rng.randrange(3 * size) // rng.choice((1, 4)) // 4 * 4
            await driver.execute(word, address, 0)
            if word & 0x5F == 7:
                store = word & 0x20 != 0
                for old, at in behind[-2:]:
                    if old != store and abs(at - address) < 4 * vl:
                        COVER.hit("a load of what is being stored" if old else "a store to what is being loaded")
                behind.append((store, address))
        await driver.settle()


async def _indices(driver: VectorDriver, register: int, indices: list[int]) -> None:
    """Into registers from `register` on, through memory."""
    await driver.settle()
    values = b"".join((index & 0xFFFFFFFF).to_bytes(4, "little") for index in indices)
    for ram in (driver.ram, driver.golden_ram):
        ram[: len(values)] = values
    await driver.execute(0x0202_E007 | register << 7, RAM, 0)  # vle32.v


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(stalls=[0.0, 0.4])
async def finds_words_where_each_lane_says(dut, stalls: float) -> None:
    """Indexed and strided: own banks, one bank, the same words, and now and then what is no word of local memory."""
    driver = VectorDriver(dut, stalls)
    driver.overlap, driver.slowly = 0.8, 0.05
    rng, row = driver.random, driver.line_bytes
    await driver.start()
    for _ in range(60):
        await driver.random_registers()
        lmul = rng.randrange(4)
        most = driver.lanes << lmul
        await driver.execute(_vsetvli(2 << 3 | lmul), rng.choice((most, rng.randrange(most + 1))), 0)
        for _ in range(4):
            kind = rng.choice(("own bank", "any", "few words"))
            rows, base = RAM_BYTES // row, RAM + 4 * rng.randrange(4) * (kind != "own bank")
            indices = [
                row * rng.randrange(rows - 1) + 4 * (n % driver.lanes)
                if kind == "own bank"
                else 4 * rng.randrange((RAM_BYTES - 16) // 4 if kind == "any" else 3)
                for n in range(most)
            ]
            if rng.random() < 0.3:
                indices[rng.randrange(most)] = rng.choice((1, 2, DEVICE - base + 8, RAM_BYTES, -4 * RAM_BYTES))
                COVER.hit("lookups with one that is none")
            await _indices(driver, 8, indices)
            for _ in range(3):
                load, masked = rng.random() < 0.5, rng.random() < 0.4
                data = rng.choice((16, 24))
                word = (not masked) << 25 | 8 << 20 | 5 << 15 | 6 << 12 | data << 7 | (0x07 if load else 0x27)
                if rng.random() < 0.7:
                    await driver.execute(word | rng.choice((1, 3)) << 26, base, 0)
                    COVER.hit(f"lookups, {kind}")
                else:
                    await driver.execute(
                        word | 2 << 26, base + 0x400, rng.choice((0, 4, -4, 8, row, -row, 12, 2)) & 0xFFFFFFFF
                    )
                if rng.random() < 0.5:
                    await driver.execute(0x0000_0057 | 1 << 25 | 16 << 20 | 24 << 15 | rng.choice((16, 24)) << 7, 0, 0)
                if driver.hart.vector.vstart:
                    await driver.write_csr(VSTART, 0)
        await driver.settle()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def lookups_wait_for_each_register(dut) -> None:
    """Each that a division is writing, as an index and as data."""
    driver = VectorDriver(dut)
    driver.overlap, driver.slowly = 1.0, 0
    rng, lanes = driver.random, driver.lanes
    await driver.start()
    await driver.execute(_vsetvli(2 << 3), lanes, 0)
    for register in range(3, 32):
        quotient = 0x20 << 26 | 1 << 25 | 1 << 20 | 2 << 15 | 2 << 12 | register << 7 | 0x57  # vdivu.vv of v1 by v2
        other = 3 if register > 16 else 31
        for index, data, opcode in ((register, other, 0x07), (1, register, 0x27), (register, other, 0x27)):
            await driver.random_registers()
            await _indices(driver, 2, [1] * lanes)
            await _indices(driver, 1, [4 * rng.randrange(RAM_BYTES // 4) for _ in range(lanes)])
            await driver.execute(quotient, 0, 0)
            await driver.execute(3 << 26 | 1 << 25 | index << 20 | 5 << 15 | 6 << 12 | data << 7 | opcode, RAM, 0)
            await driver.settle()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def takes_the_cycles_it_says(dut) -> None:
    """Of instructions on `n` registers: one alone until all is quiet, and many that overlap."""
    driver = VectorDriver(dut)
    driver.slowly = 0
    await driver.start()
    await driver.random_registers()
    await driver.settle()
    places = (driver.line_bytes // 4).bit_length() - 1  # log2 of elements of a register
    add, compare, reduce, load, store = 0x0284_0857, 0x6284_0C57, 0x0284_2C57, 0x0202_E407, 0x0202_E827
    for lmul, n in enumerate((1, 2, 4, 8)):
        await driver.execute(_vsetvli(2 << 3 | lmul), 1 << 20, 0)
        for word, cycles in (
            (add, n + 3),  # vadd.vv v16, v8, v8
            (compare, n + 4),  # vmseq.vv v24, v8, v8
            (reduce, n + 5 + places),  # vredsum.vs v24, v8, v8
            (load, n + 2),  # vle32.v v8, (x5)
            (store, n + 2),  # vse32.v v16, (x5)
        ):
            await driver.execute(word, RAM, 0)
            assert driver.cycles_taken == 1, driver.cycles_taken
            assert driver.cycles_to_quiet == cycles, (hex(word), driver.cycles_to_quiet)
        row, lanes = driver.line_bytes, driver.lanes
        own = [row * driver.random.randrange(RAM_BYTES // row) + 4 * (k % lanes) for k in range(n * lanes)]
        for indices, cycles in ((own, n + 2), ([row * k for k in range(n * lanes)], n * lanes + 2)):
            await _indices(driver, 8, indices)
            await driver.settle()
            for word in (0x0682_E807, 0x0682_E827):  # vluxei32.v v16, (x5), v8; vsuxei32.v
                await driver.execute(word, RAM, 0)
                assert driver.cycles_taken == cycles, (hex(word), driver.cycles_taken)
        # loads, sums and stores
        driver.overlap, begun = 1.0, driver.cycle
        for k in range(10):
            await driver.execute(load, RAM + 0x100 * (k % 4), 0)
            await driver.execute(add, 0, 0)
            await driver.execute(store, RAM + 0x800 + 0x100 * (k % 4), 0)
        await driver.settle()
        driver.overlap = 0.0
        cycles = driver.cycle - begun
        need = {1: 45, 2: 50, 4: 61, 8: 97}[n]
        assert cycles == need, f"ten times {n} registers take {cycles} cycles, not {need}"


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
