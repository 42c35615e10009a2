"""Sums to BF16: every way and every special, against the golden, and how often random bits round up."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Timer

from rtl.contract.isa import Rounding
from verif.agents.bench import Bench
from verif.agents.values import FLAVOURS, random_codes
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.rounding import to_bf16

RUNS = (Run("bf16_round", faults=EVERY),)

LANE = 0  # of the unit as it is built alone; other lanes: bench_add_lanes

coverage = Coverage(
    "bf16_round", ["as it is", "tie to even", "up", "down", "at random up", "at random down"]
    + ["nothing cut", "subnormal", "to infinity", "infinite", "nan"],
)  # fmt: skip


@cocotb.test()
async def rounds_hard_numbers(dut: Any) -> None:
    """Codes of every flavour, ties and neighbours of ties, the largest BF16, in each way."""
    bench = Bench(dut)
    await bench.start()
    rng = bench.rng
    parts = [random_codes(rng, (400,), "fp32", flavour) for flavour in FLAVOURS]
    upper = rng.integers(0, 0x7F80, 1200).astype(np.uint32) << np.uint32(16)
    parts.append(upper | rng.choice(np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32), len(upper)))
    parts.append(rng.integers(0x7F7F0000, 0x7F800000, 200).astype(np.uint32))
    codes = np.concatenate(parts).astype(np.uint32)
    codes ^= (rng.integers(0, 2, len(codes)) << 31).astype(np.uint32)
    codes[(codes & 0x7FFFFFFF) > 0x7F800000] = 0x7FC00000  # sums have no other NaN
    settle = Timer(1, "ns")
    for mode in Rounding:
        words = rng.integers(0, 1 << 32, len(codes)).tolist()
        want = to_bf16(codes[None, :], mode, words)[0]
        note(codes, want, mode)
        dut.mode.value = int(mode)
        for code, word, right in zip(codes.tolist(), words, want.tolist(), strict=True):
            dut.x.value = code
            dut.word.value = word
            await settle
            seen = int(dut.out.value)
            assert seen == right, f"{mode.name} of {code:#010x}, word {word:#x}: {seen:#010x}, should be {right:#010x}"
    coverage.require_all()


@cocotb.test()
async def goes_up_as_often_as_it_should(dut: Any) -> None:
    """A quarter of the way from one BF16 to the next: up in a quarter of 4,096 words."""
    bench = Bench(dut)
    await bench.start()
    dut.mode.value = int(Rounding.STOCHASTIC)
    dut.x.value = 0x3F804000
    settle = Timer(1, "ns")
    ups = 0
    for word in range(4096):
        dut.word.value = word
        await settle
        ups += int(dut.out.value) == 0x3F810000
    assert abs(ups - 1024) < 5 * (4096 * 0.25 * 0.75) ** 0.5, f"{ups} of 4096 went up, about 1024 should"


def note(codes: Any, want: Any, mode: Rounding) -> None:
    """Which situations there are."""
    size, cut = codes & 0x7FFFFFFF, codes & 0xFFFF
    went_up = (want & 0x7FFFFFFF) > size
    finite = size < 0x7F800000
    if mode == Rounding.FP32:
        coverage.hit("as it is")
    elif mode == Rounding.NEAREST:
        coverage.when((finite & (cut == 0x8000) & ~went_up).any(), "tie to even")
        coverage.when(went_up.any(), "up")
        coverage.when((finite & (cut != 0) & ~went_up).any(), "down")
        coverage.when((finite & (cut == 0)).any(), "nothing cut")
        coverage.when((size < 0x800000).any(), "subnormal")
        coverage.when((finite & (want & 0x7FFFFFFF == 0x7F800000)).any(), "to infinity")
        coverage.when((size == 0x7F800000).any(), "infinite")
        coverage.when((size > 0x7F800000).any(), "nan")
    else:
        coverage.when(went_up.any(), "at random up")
        coverage.when((finite & (cut != 0) & ~went_up).any(), "at random down")
