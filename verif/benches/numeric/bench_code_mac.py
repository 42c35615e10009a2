"""BF16 and FP16 multiply-add, codes to codes, against the golden model."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.formats import FORMATS
from rtl.numeric.pe.code_mac import Bf16Mac
from verif.agents.bench import Bench
from verif.agents.pipe import push
from verif.agents.values import companions, random_codes, single_bit_codes, special_codes
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, expect_equal, note_outcomes
from verif.golden.numeric import bf16_mac, decode, fp16_mac

_OF_BF16_MAC = (
    "bits shifted out by alignment are forgotten",
    "a difference of zero has a sign",
    "a sum rounds ties up, not to even",
    "a subnormal sum becomes zero",
    "infinity times zero is infinity in a PE",
    "a subnormal code of an operand is taken for zero",
)
_OF_FP16_MAC = (
    "bits shifted out by alignment are forgotten",
    "a difference of zero has a sign",
    "a sum rounds ties up, not to even",
    "a subnormal sum becomes zero",
    "infinity times zero is infinity in a PE",
    "a subnormal code of an operand is taken for zero",
    "the exponent of an FP16 subnormal is one too small",
)

RUNS = (Run("bf16_mac", faults=_OF_BF16_MAC), Run("fp16_mac", faults=_OF_FP16_MAC))

coverage = Coverage("code_mac", OUTCOMES)


def format_of(bench: Bench) -> str:
    """The format that this top was built for."""
    return "fp16" if bench.manifest.top == "fp16_mac" else "bf16"


async def check(bench: Bench, a: Any, b: Any, acc: Any) -> None:
    """Push and compare."""
    inputs = {"a": a.astype(np.uint32), "b": b.astype(np.uint32), "acc": acc.astype(np.uint32)}
    golden = fp16_mac if format_of(bench) == "fp16" else bf16_mac
    wanted = golden(a.astype(np.uint16), b.astype(np.uint16), inputs["acc"])
    note_outcomes(coverage, wanted)
    seen = await push(bench, inputs, "out", Bf16Mac.LATENCY)
    expect_equal(seen, wanted, inputs)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def computes_all_pairs_of_corners(dut: Any) -> None:
    """Each pair with a few corner accumulators; one bit alone at each input."""
    bench = Bench(dut)
    await bench.start()
    fmt = FORMATS[format_of(bench)]
    corners, infinity = special_codes(fmt), ((1 << fmt.exponent) - 1) << fmt.mantissa
    a, b = (x.ravel() for x in np.meshgrid(corners, corners))
    for _ in range(3):
        await check(bench, a, b, bench.rng.choice(special_codes(FORMATS["fp32"]), len(a)))
    single = np.tile(single_bit_codes(fmt), 8)
    zero = np.zeros(len(single), np.uint32)
    for other in (random_codes(bench.rng, single.shape, format_of(bench), "normal"), np.full_like(single, infinity)):
        await check(bench, single, other, zero)
        await check(bench, other, single, zero)
    single = np.tile(single_bit_codes(FORMATS["fp32"]), 2)
    normal = random_codes(bench.rng, single.shape, format_of(bench), "normal")
    await check(bench, normal, np.zeros(len(single), np.uint32), single)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def computes_random_codes(dut: Any) -> None:
    """All flavours of operands, accumulators that cancel, tie or lie far away."""
    bench = Bench(dut)
    await bench.start()
    fmt = format_of(bench)
    for flavour in ("bits", "normal", "special", "subnormal", "narrow"):
        a = random_codes(bench.rng, (1500,), fmt, flavour)
        b = random_codes(bench.rng, (1500,), fmt, flavour)
        with np.errstate(all="ignore"):
            product = decode(a.astype(np.uint16), fmt) * decode(b.astype(np.uint16), fmt)
        await check(bench, a, b, companions(bench.rng, product.view(np.uint32)))
    coverage.require_all()
