"""FP32 codes to their two halves: ties, carries, subnormals, overflow, specials."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Timer

from verif.agents.bench import Bench
from verif.agents.operands import operand_words
from verif.agents.values import FLAVOURS, random_codes
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.numeric import fp32_halves

RUNS = (Run("halves", seeds=(1,), faults=EVERY),)

coverage = Coverage(
    "halves", ["subnormal", "tie to even", "carry", "overflow", "exact", "rounded up", "infinite", "nan", "zero"]
)


@cocotb.test()
async def splits_hard_numbers(dut: Any) -> None:
    """Both halves of every code, bit by bit; their sum is the number."""
    bench = Bench(dut)
    await bench.start()
    rng = bench.rng
    hard = [random_codes(rng, (3000,), "fp32", flavour) for flavour in FLAVOURS]
    fields = np.repeat(np.arange(256, dtype=np.uint32), 20) << np.uint32(23)
    places = rng.integers(0, 1 << 11, len(fields)).astype(np.uint32) << np.uint32(12)
    ends = np.resize(np.array([0x7FF, 0x800, 0x801, 0, 1, 0xFFF], np.uint32), len(fields))
    shifted = rng.integers(0, 1 << 23, 4000) >> rng.integers(0, 23, 4000)  # subnormals of every length
    hard += [fields | places | ends, fields | np.uint32(0x7FF000) | ends, shifted.astype(np.uint32)]
    codes = np.concatenate(hard).astype(np.uint32)
    codes ^= (rng.integers(0, 2, len(codes)) << 31).astype(np.uint32)
    high, low = fp32_halves(codes)
    note(codes, high, low)
    settle = Timer(1, "ns")
    for is_low, half in ((0, high), (1, low)):
        dut.low.value = is_low
        for code, want in zip(codes.tolist(), operand_words(half).tolist(), strict=True):
            dut.bits.value = code
            await settle
            seen = int(dut.operand.value)
            name = "low" if is_low else "high"
            assert seen == want, f"{name} half of {code:#010x}: is {seen:#08x}, should be {want:#08x}"
    coverage.require_all()


def note(codes: Any, high: Any, low: Any) -> None:
    """Which situations there are."""
    x = codes.view(np.float32)
    size = codes & 0x7FFFFFFF
    finite = size < 0x7F800000
    with np.errstate(invalid="ignore", over="ignore"):
        exact = finite & np.isfinite(high) & (high.astype(np.float64) + low == x)
        up = finite & (np.abs(high) > np.abs(x))
    assert (exact | ~finite | ~np.isfinite(high)).all(), "the halves do not add up"
    coverage.when((size < 0x800000).any(), "subnormal")
    coverage.when((finite & (size & 0x1FFF == 0x0800)).any(), "tie to even")
    coverage.when((up & (size & 0x7FF000 == 0x7FF000)).any(), "carry")
    coverage.when((finite & np.isinf(high)).any(), "overflow")
    coverage.when((low == 0).any(), "exact")
    coverage.when(up.any(), "rounded up")
    coverage.when((size == 0x7F800000).any(), "infinite")
    coverage.when((size > 0x7F800000).any(), "nan")
    coverage.when((size == 0).any(), "zero")
