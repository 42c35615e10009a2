"""Fused multiply-add of PE operands against the golden model, wider than any format that exists yet."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.formats import FORMATS
from rtl.numeric.pe.mac import Mac
from verif.agents.bench import Bench
from verif.agents.operands import operand_words, random_wide_values
from verif.agents.pipe import push
from verif.agents.values import companions, random_codes, special_codes
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, expect_equal, note_outcomes
from verif.golden.numeric import canonical, decode, fused

_PLANTED = (
    "bits shifted out by alignment are forgotten",
    "a difference of zero has a sign",
    "a sum rounds ties up, not to even",
    "a subnormal sum becomes zero",
    "infinity times zero is infinity in a PE",
    "an unused element adds its product",
)

RUNS = (Run("mac", faults=_PLANTED),)

coverage = Coverage("mac", [*OUTCOMES, "unused", "product below FP32", "product above FP32", "tie"])


async def check(bench: Bench, a: Any, b: Any, acc: Any, use: Any) -> None:
    """Push values a and b and codes acc, and compare."""
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * b
        exact = product + acc.astype(np.uint32).view(np.float32)
    wanted = np.where(use, canonical(fused(a, b, acc.view(np.float32))), acc)
    size = np.abs(product)
    coverage.when(((size > 0) & (size < 2.0**-149)).any(), "product below FP32")
    coverage.when(((size >= 2.0**128) & np.isfinite(size)).any(), "product above FP32")
    with np.errstate(all="ignore"):
        low = exact.astype(np.float32).astype(np.float64)
        ulp = np.spacing(np.abs(low).astype(np.float32)).astype(np.float64)
        coverage.when((np.isfinite(exact) & (np.abs(exact - low) == ulp / 2)).any(), "tie")
    coverage.when((~use).any(), "unused")
    note_outcomes(coverage, wanted)
    inputs = {"a": operand_words(a), "b": operand_words(b), "acc": acc, "enable": use.astype(np.uint32)}
    seen = await push(bench, inputs, "out", Mac.LATENCY)
    expect_equal(seen, wanted.astype(np.uint32), inputs)


def accumulators(bench: Bench, a: Any, b: Any) -> Any:
    """Hard sums for the products a * b, in random order of difficulty."""
    with np.errstate(all="ignore"):
        product = (a.astype(np.float64) * b).astype(np.float32)
    return companions(bench.rng, product.view(np.uint32))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def multiplies_and_adds_twelve_bit_operands(dut: Any) -> None:
    """All exponents down to those of the halves of FP32 subnormals."""
    bench = Bench(dut)
    await bench.start()
    for spread in (149, 80, 12):
        a = random_wide_values(bench.rng, 3000, spread)
        b = random_wide_values(bench.rng, 3000, spread)
        await check(bench, a, b, accumulators(bench, a, b), bench.rng.random(3000) < 0.9)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def multiplies_and_adds_bf16_and_fp16(dut: Any) -> None:
    """Pairs of corners; specials, subnormals and few-bit mantissas of the formats that exist."""
    bench = Bench(dut)
    await bench.start()
    for fmt in ("bf16", "fp16"):
        corners = decode(special_codes(FORMATS[fmt]).astype(np.uint16), fmt)
        a, b = (x.ravel() for x in np.meshgrid(corners, corners))
        await check(bench, a, b, accumulators(bench, a, b), np.ones(len(a), np.bool_))
        for flavour in ("bits", "special", "narrow", "subnormal"):
            a = decode(random_codes(bench.rng, (1200,), fmt, flavour).astype(np.uint16), fmt)
            b = decode(random_codes(bench.rng, (1200,), fmt, flavour).astype(np.uint16), fmt)
            await check(bench, a, b, accumulators(bench, a, b), bench.rng.random(1200) < 0.95)
    coverage.require_all()
