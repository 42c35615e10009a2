"""VectorUnit: random instructions of Zve32x with every SEW and LMUL do what the golden hart does."""

import cocotb

from verif.bench import Run
from verif.benches.gpsimd.vector_driver import VSTART, VXRM, VXSAT, VectorDriver
from verif.benches.gpsimd.vector_unit_top import DEVICE, RAM, RAM_BYTES
from verif.checks.vector_words import LMULS, random_vector_word, vtypes

RUNS = (
    Run("vector_unit", options={"lanes": 4}),
    Run("vector_unit", options={"lanes": 16}),
)

import os
_INSTRUCTIONS = int(os.environ.get('NN', 3000))
from collections import Counter
COUNT = Counter()
NAMES = Counter()
from verif.golden.riscv.vector.decode import decode_vector
def name_of(w):
    i = decode_vector(w)
    return i.name + '.' + i.form + ('m' if i.masked else '')

_SETVL = 0xC000_7057  # vsetivli x0, 0


def _vsetvli(vtype: int) -> int:
    return vtype << 20 | 5 << 15 | 7 << 12 | 0x57  # vsetvli x0, x5, vtype


async def _random_registers(driver: VectorDriver) -> None:
    """All registers from memory, some with small numbers."""
    rng = driver.random
    for register in (0, 8, 16, 24):
        size = 8 * driver.line_bytes
        kind = rng.random()
        values = rng.randbytes(size)
        if kind < 0.3:
            values = b"".join(rng.randrange(64).to_bytes(w := rng.choice((1, 2, 4)), "little") for _ in range(size))[:size]
        elif kind < 0.4:
            values = bytes(rng.choice((0, 0, 0x7F, 0x80, 0xFF, 1)) for _ in range(size))
        for ram in (driver.ram, driver.golden_ram):
            ram[:size] = values
        await driver.execute(7 << 29 | 1 << 25 | 8 << 20 | 5 << 15 | 6 << 12 | register << 7 | 7, RAM, 0)


def _address(driver: VectorDriver) -> int:
    rng = driver.random
    kind = rng.random()
    if kind < 0.7:
        place = RAM + rng.randrange(RAM_BYTES - 8 * driver.line_bytes)
    elif kind < 0.85:
        place = RAM + RAM_BYTES - rng.randrange(8 * driver.line_bytes)
    elif kind < 0.95:
        place = DEVICE + rng.randrange(0x100)
    else:
        place = rng.getrandbits(32)
    return place & ~3 if rng.random() < 0.85 else place


def _stride(driver: VectorDriver) -> int:
    rng = driver.random
    return rng.choice((0, 1, 2, 4, 4, 8, 12, 36, -4, -8, 1 << 20, rng.getrandbits(32))) & 0xFFFFFFFF


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(stalls=[0.0, 0.4])
async def does_what_golden_does(dut, stalls: float) -> None:
    driver = VectorDriver(dut, stalls)
    rng = driver.random
    await driver.start()
    lmul = 0
    for n in range(_INSTRUCTIONS):
        if n % 40 == 0:
            await _random_registers(driver)
        state = driver.hart.vector
        if n % 12 == 0 or (state.vtype >> 31 and rng.random() < 0.7):
            vtype = rng.choice(vtypes())
            lmul = (vtype & 7) - 8 if vtype & 4 else vtype & 7
            vl = rng.choice((0, 1, rng.randrange(20), rng.randrange(600), 1 << 20))
            await driver.execute(_vsetvli(vtype), vl, 0)
        if rng.random() < 0.05:
            await driver.write_csr(VXRM, rng.randrange(8))
            await driver.write_csr(VXSAT, rng.randrange(2))
        if state.vstart and rng.random() < 0.7:
            await driver.write_csr(VSTART, 0)
        elif rng.random() < 0.03:
            await driver.write_csr(VSTART, rng.randrange(24))
        word = random_vector_word(rng, lmul)
        is_memory = word & 0x5F == 7
        rs1 = _address(driver) if is_memory else rng.choice((rng.getrandbits(32), rng.randrange(40), 0x7FFFFFFF, 0x80000000))
        rs2 = _stride(driver) if is_memory else rng.choice(vtypes())
        want = await driver.execute(word, rs1, rs2, 0 if rng.random() < 0.01 else 3)
        COUNT[(want.trap and want.cause)] += 1
        if not want.trap: NAMES[name_of(word), state.vtype & 63] += 1
        if rng.random() < 0.3:
            await driver.compare_csrs()
    print("COUNT", COUNT, len(NAMES), len({n for n, _ in NAMES}))
