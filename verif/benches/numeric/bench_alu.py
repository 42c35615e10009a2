"""Operators of the vector engine against the golden model: every operator on corners, random ones on random values.

The bench lets `enable` fall at random: the result must stay.
"""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.isa import AluOp
from verif.agents.bench import Bench
from verif.agents.stall import styled
from verif.agents.values import companions, random_codes
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, expect_equal, note_outcomes
from verif.golden.alu import alu

_PLANTED = (
    "a NaN loses against a number",
    "the larger of two zeros is the first",
    "negative numbers are compared by their magnitudes",
    "zeros of different signs differ",
    "the ALU ignores `reverse`",
    "the ALU ignores `enable`",
    "a difference is a sum in the ALU",
    "a square is a product in the ALU",
    "NE of the ALU is false for NaN",
    "GE and LE of the ALU are true for NaN",
    "-0 counts as true in logic",
    "relu of the ALU keeps -0",
    "abs of the ALU keeps a NaN's payload",
    "shifts are not by y mod 32",
    "a shift to the right copies the sign",
)

RUNS = (Run("alu", faults=_PLANTED),)

coverage = Coverage(
    "alu",
    [op.name for op in AluOp]
    + [f"{op.name} reversed" for op in AluOp]
    + [*OUTCOMES, "held", "full rate", "shift beyond 31", "unordered comparison", "zeros of both signs"],
)
CORNERS = (0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F800001, 0x7F7FFFFF, 0x7F800000, 0x7FC00001, 0x21)
COMPARISONS = (AluOp.EQ, AluOp.NE, AluOp.GT, AluOp.GE, AluOp.LT, AluOp.LE)


def expected(op: Any, x: Any, y: Any, reverse: Any) -> Any:
    """Results, and what the bins say of them."""
    wanted = np.zeros(x.size, np.uint32)
    for which in AluOp:
        here = op == int(which)
        first, second = np.where(reverse, y, x), np.where(reverse, x, y)
        wanted[here] = alu(which, first[here], second[here])
        coverage.when((here & ~reverse).any(), which.name)
        coverage.when((here & reverse).any(), f"{which.name} reversed")
    note_outcomes(coverage, wanted[op < AluOp.EQ])
    shifts = (op == AluOp.SHIFT_LEFT) | (op == AluOp.SHIFT_RIGHT)
    coverage.when((shifts & ~reverse & (y > 31)).any(), "shift beyond 31")
    unordered = (x & np.uint32(0x7FFFFFFF) > 0x7F800000) | (y & np.uint32(0x7FFFFFFF) > 0x7F800000)
    coverage.when((np.isin(op, COMPARISONS) & unordered).any(), "unordered comparison")
    coverage.when(((x ^ y == 1 << 31) & (x << np.uint32(1) == 0) & (op == AluOp.MAX)).any(), "zeros of both signs")
    return wanted


async def check(bench: Bench, op: Any, x: Any, y: Any, reverse: Any, stalls: str) -> None:
    """Element i of each in the i-th cycle with `enable`; compare what stands there in every cycle."""
    dut = bench.dut
    edge = RisingEdge(bench.clk)
    wanted = expected(op, x, y, reverse)
    given = {"op": op.astype(np.uint32), "x": x, "y": y, "reverse": reverse.astype(np.uint32)}
    columns = [v.tolist() for v in given.values()]
    handles = [getattr(dut, name) for name in given]
    dont_care = random_codes(bench.rng, (x.size,), "fp32", "bits").tolist()
    held_back = styled(stalls, bench.rng)
    seen: list[int] = []
    of: list[int] = []  # the element whose result it is
    last, streak = -1, 0
    while not of or of[-1] < x.size - 1:
        idle = last + 1 == x.size or next(held_back)
        dut.enable.value = int(not idle)
        if idle:
            dut.x.value = dut.y.value = dont_care[last]
        else:
            for handle, column in zip(handles, columns, strict=True):
                handle.value = column[last + 1]
        await edge
        if last >= 0:  # what stood there before this edge
            seen.append(int(dut.out.value))
            of.append(last)
        streak = 0 if idle else streak + 1
        coverage.when(idle and last >= 0, "held")
        coverage.when(streak > 8, "full rate")
        last += not idle
    expect_equal(np.array(seen, np.uint32), wanted[of], {name: values[of] for name, values in given.items()})


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_operator_on_corners(dut: Any) -> None:
    """All pairs of corners of both signs; every bit alone, as a number and as a NaN, beside 1, 0 and itself."""
    bench = Bench(dut)
    dut.enable.value = 0
    await bench.start()
    corners = np.array([c | s for s in (0, 1 << 31) for c in CORNERS], np.uint32)
    x, y = (v.ravel() for v in np.meshgrid(corners, corners))
    alone = np.array([1 << k for k in range(31)] + [0x7F800000 | 1 << k for k in range(23)], np.uint32)
    for other in (np.full_like(alone, 0x3F800000), np.zeros_like(alone), alone):
        x, y = np.concatenate([x, alone, other]), np.concatenate([y, other, alone])
    for op in AluOp:
        reverse = bench.rng.random(x.size) < 0.3
        await check(bench, np.full(x.size, int(op)), x, y, reverse, "never")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def operators_change_every_cycle(dut: Any) -> None:
    """Random operators, random values, cycles without `enable` between them."""
    bench = Bench(dut)
    dut.enable.value = 0
    await bench.start()
    rng = bench.rng
    for flavour, stalls in (("bits", "never"), ("special", "half"), ("narrow", "rarely"), ("subnormal", "bursty")):
        x = random_codes(rng, (1500,), "fp32", flavour).astype(np.uint32)
        y = np.where(rng.random(1500) < 0.3, random_codes(rng, (1500,), "fp32", flavour), companions(rng, x))
        op = rng.choice([int(o) for o in AluOp], 1500)
        await check(bench, op, x, y.astype(np.uint32), rng.random(1500) < 0.3, stalls)
    coverage.require_all()
