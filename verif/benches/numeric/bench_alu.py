"""Operators of the vector engine against the golden model: pairs of corners and random operands for each."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, Timer

from rtl.contract.formats import FORMATS
from rtl.contract.isa import AluOp
from verif.agents.bench import Bench
from verif.agents.values import companions, random_codes, special_codes
from verif.checks.coverage import Coverage
from verif.checks.outcomes import expect_equal
from verif.golden.alu import alu

coverage = Coverage("alu", [op.name for op in AluOp] + ["reversed", "nan", "zeros of both signs"])


@cocotb.test()
async def operates(dut: Any) -> None:
    """There is no clock: set operands, wait, compare."""
    bench = Bench(dut)
    await bench.start()
    corners = special_codes(FORMATS["fp32"])
    a, b = (x.ravel().astype(np.uint32) for x in np.meshgrid(corners, corners))
    wild = random_codes(bench.rng, (150,), "fp32", "special").astype(np.uint32)
    a, b = np.concatenate([a, wild]), np.concatenate([b, companions(bench.rng, wild).astype(np.uint32)])
    for op in AluOp:
        for reverse in (0, 1):
            chosen = bench.rng.random(a.size) < (0.6 if reverse else 1)
            x, y = a[chosen], b[chosen]
            dut.op.value = int(op)
            dut.reverse.value = reverse
            seen = np.zeros(x.size, np.uint32)
            for i, (one, other) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
                dut.x.value = one
                dut.y.value = other
                await ReadOnly()
                seen[i] = int(dut.out.value)
                await Timer(1, "ps")
            expect_equal(seen, alu(op, x, y, bool(reverse)), {"x": x, "y": y, "op": np.full(x.size, int(op))})
            coverage.hit(op.name)
            coverage.when(reverse == 1, "reversed")
            coverage.when((x & np.uint32(0x7FFFFFFF) > 0x7F800000).any(), "nan")
            coverage.when(((x ^ y == 1 << 31) & (x & np.uint32(0x7FFFFFFF) == 0)).any(), "zeros of both signs")
    coverage.require_all()
