"""VectorUnit: every encoding of Zve32x with every SEW and LMUL, as in the golden hart; what is none traps."""

import random
from collections.abc import Iterator
from itertools import product

import cocotb

from verif.bench import Run
from verif.benches.gpsimd.vector_driver import VSTART, VectorDriver
from verif.benches.gpsimd.vector_unit_top import RAM, RAM_BYTES
from verif.checks.vector_encodings import Encoding, encodings
from verif.checks.vector_words import UNARY, WHOLE_MOVE, vtypes

_FAULTS = ("vwmaccsu takes its scalar as unsigned", "viota counts the element itself")

RUNS = (
    Run("vector_unit", options={"lanes": 4}, seeds=(1,), faults=_FAULTS),
    *(Run("vector_unit", options={"lanes": n}, seeds=tuple(range(100, 105)), regress=True) for n in (4, 8, 16)),
)

_ILLEGAL = 2
_TRIES = 6
"""With any registers, before some that fit."""


async def _execute(driver: VectorDriver, encoding: Encoding, lmul: int, *, safe: bool) -> bool:
    """False if it is no instruction."""
    rng = driver.random
    address = RAM + 4 * rng.randrange(RAM_BYTES // 4 - 8 * driver.line_bytes)
    rs1 = address if encoding.vs1 == 5 else rng.choice((rng.getrandbits(32), rng.randrange(40)))
    want = await driver.execute(encoding.word(rng, lmul, safe=safe), rs1, rng.choice((0, 4, 8, 12)))
    if driver.hart.vector.vstart:
        await driver.write_csr(VSTART, 0)
    return not (want.trap and want.cause == _ILLEGAL)


def _all_words(rng: random.Random) -> Iterator[int]:
    """Each funct6, funct3 and vm of OP-V but vset*, with each vs1 where that chooses; each mop, vm, width and lumop of
    loads and stores. Registers fit any instruction, and the number of fields is anything."""
    for funct6, funct3, vm in product(range(64), range(7), (0, 1)):
        chooses = funct6 in UNARY or funct6 == WHOLE_MOVE
        for vs1 in range(32) if chooses else (8,):
            vs2, vd = rng.choice((0, 16)), rng.choice((0, 4, 24))
            yield funct6 << 26 | vm << 25 | vs2 << 20 | vs1 << 15 | funct3 << 12 | vd << 7 | 0x57
    for opcode, mop, vm, width in product((0x07, 0x27), range(4), (0, 1), (0, 5, 6, 7)):
        for lumop in range(32) if mop == 0 else (16,):
            yield rng.randrange(16) << 28 | mop << 26 | vm << 25 | lumop << 20 | 5 << 15 | width << 12 | 8 << 7 | opcode


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def refuses_what_golden_refuses(dut) -> None:
    driver = VectorDriver(dut)
    driver.overlap = 0.8
    refused = done = 0
    await driver.start()
    for number, word in enumerate(_all_words(driver.random)):
        if number % 40 == 0:
            await driver.random_registers()
            await driver.execute(2 << 23 | 5 << 15 | 7 << 12 | 0x57, driver.lanes - 1, 0)  # vsetvli x0, x5, e32, m1
        want = await driver.execute(word, RAM + 4 * driver.random.randrange(RAM_BYTES // 8), 4)
        refused += want.trap and want.cause == _ILLEGAL
        done += not want.trap
        if driver.hart.vector.vstart:
            await driver.write_csr(VSTART, 0)
    await driver.settle()
    assert refused > 2000 and done > 300, (refused, done)
    dut._log.info("of %d words %d were executed and %d refused as illegal", number + 1, done, refused)


@cocotb.test(timeout_time=200, timeout_unit="ms")
async def executes_each_with_each_vtype(dut) -> None:
    driver = VectorDriver(dut)
    driver.overlap = 0.8
    rng, legal, illegal = driver.random, 0, 0
    await driver.start()
    for vtype in vtypes():
        sew, lmul = 8 << (vtype >> 3), (vtype & 7) - 8 if vtype & 4 else vtype & 7
        for number, encoding in enumerate(encodings()):
            if number % 40 == 0:
                await driver.random_registers()
                vl = rng.choice((rng.randrange(1, 12), rng.randrange(1, 12), rng.randrange(1, 12), 1 << 20))
                await driver.execute(vtype << 20 | 5 << 15 | 7 << 12 | 0x57, vl, 0)  # vsetvli x0, x5, vtype
            if not encoding.exists(sew, lmul):
                done = await _execute(driver, encoding, lmul, safe=True)
                assert not done, f"{encoding.name} is no instruction with SEW {sew} and log2 of LMUL {lmul}"
                illegal += 1
                continue
            for n in range(_TRIES + 1):
                if await _execute(driver, encoding, lmul, safe=n == _TRIES):
                    break
            else:
                raise AssertionError(f"{encoding.name} is an instruction with SEW {sew} and log2 of LMUL {lmul}")
            legal += 1
    await driver.settle()
    dut._log.info("%d pairs of an encoding and a vtype were executed, %d are illegal and were refused", legal, illegal)
