"""VectorUnit: every encoding of Zve32x with every SEW and LMUL, as in the golden hart; what is none traps."""

import cocotb

from verif.bench import Run
from verif.benches.gpsimd.vector_driver import VSTART, VectorDriver
from verif.benches.gpsimd.vector_unit_top import RAM, RAM_BYTES
from verif.checks.vector_encodings import Encoding, encodings
from verif.checks.vector_words import vtypes

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
