"""A row of adders: the forms against each other in every cycle, and against the golden model."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.numeric.fp32.add_lanes import Fp32AddLanes
from verif.agents.bench import Bench
from verif.agents.values import companions, random_codes
from verif.bench import Run
from verif.benches.numeric.add_lanes_top import LANES
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, note_outcomes
from verif.golden.numeric import fp32_add
from verif.golden.rounding import to_bf16

_PLANTED = (
    "native adders: a NaN keeps its sign and payload",
    "native adders: subnormal numbers are flushed to zero",
    "native adders: lane 0 gives the last lane's sum",
    "native adders: sums are truncated",
    "native adders: lanes share their random bits",
    "native adders: ties of BF16 go away from zero",
    "native adders: random bits are those of the row before",
)

RUNS = (Run("add_lanes", faults=_PLANTED),)

coverage = Coverage("add_lanes", [*OUTCOMES, "bubble", "full rate", "to nearest", "at random"])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def forms_agree_and_are_right(dut: Any) -> None:
    """Random rows of every flavour, with bubbles."""
    bench = Bench(dut)
    dut.valid.value = 0
    await bench.start()
    rng = bench.rng
    edge = RisingEdge(bench.clk)
    due: list[Any] = []
    streak = 0
    for i in range(3000):
        flavour = ("bits", "special", "narrow", "normal")[i // 50 % 4]
        valid = bool(rng.random() < 0.8)
        a = random_codes(rng, (LANES,), "fp32", flavour)
        if i // 200 % 3 == 2:
            a &= np.uint32(0x81FFFFFF)  # near the subnormal range
        b = companions(rng, a)
        if i % 64 == 0:
            a[0] = b[0] = 1 << 31  # the only way to -0
        mode = i // 7 % 3
        if mode == 1 and i % 2:  # a tie
            a, b = a & np.uint32(0xFFFF0000) | np.uint32(0x8000), np.zeros_like(b)
        word = int(rng.integers(1 << 32))
        streak = streak + 1 if valid else 0
        coverage.when(not valid, "bubble")
        coverage.when(streak > 4, "full rate")
        dut.valid.value = int(valid)
        coverage.when(valid and mode == 1, "to nearest")
        coverage.when(valid and mode == 2, "at random")
        dut.rounding.value = mode
        dut.random.value = word
        dut.a.value = int.from_bytes(a.astype("<u4").tobytes(), "little")
        dut.b.value = int.from_bytes(b.astype("<u4").tobytes(), "little")
        due.append(to_bf16(fp32_add(a, b)[:, None], mode, [word])[:, 0] if valid else None)
        await edge
        want = due[i - Fp32AddLanes.LATENCY] if i >= Fp32AddLanes.LATENCY else None
        if want is not None:
            note_outcomes(coverage, want)
            seen = np.frombuffer(int(dut.out.value).to_bytes(4 * LANES, "little"), dtype="<u4")
            wrong = np.flatnonzero(seen != want)
            assert not len(wrong), (
                f"cycle {i}, lane {wrong[0]}: is {seen[wrong[0]]:#010x}, should be {want[wrong[0]]:#010x}"
            )
    dut.valid.value = 0
    for _ in range(4):
        await edge
    assert int(dut.compared.value) == sum(d is not None for d in due)
    assert int(dut.mismatches.value) == 0, f"the forms differ in {int(dut.mismatches.value)} rows"
    coverage.require_all()
