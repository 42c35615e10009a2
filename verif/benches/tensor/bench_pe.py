"""Processing element: weights, swap, tokens and sums, cycle by cycle against a small model."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.numeric.operand import OPERAND
from verif.agents.bench import Bench
from verif.agents.operands import operand_words
from verif.agents.values import FLAVOURS, random_codes
from verif.checks.coverage import Coverage
from verif.golden.numeric import canonical, decode, fused

coverage = Coverage(
    "pe",
    [
        "load",
        "load in the cycle of a swap",
        "swap",
        "swap of an unused beat",
        "unused beat",
        "load after load",
        "bubble",
    ],
)

USE = OPERAND.size
SWAP = OPERAND.size + 1
VALID = OPERAND.size


class Model:
    """What the PE holds, and what must leave it."""

    def __init__(self) -> None:
        self.shadow = np.float32(0)
        self.working = np.float32(0)

    def step(self, x: Any, use: bool, swap: bool, north: int, weight: Any) -> tuple[int, Any]:
        """One cycle: the sum it leads to, and the weight that goes east or None."""
        if swap:
            self.working = self.shadow
        south = north
        if use:
            acc = np.array([north], dtype=np.uint32).view(np.float32)
            south = int(canonical(fused(np.array([x]), np.array([self.working]), acc))[0])
        east = None
        if weight is not None:
            east, self.shadow = self.shadow, weight
        return south, east


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def computes_and_passes_on(dut: Any) -> None:
    """Every output in every cycle, for every flavour of numbers."""
    bench = Bench(dut)
    rng = bench.rng
    for name in ("west", "west_weight", "north"):
        getattr(dut, name).value = 0
    await bench.start()
    model = Model()
    edge = RisingEdge(bench.clk)
    sums: list[int] = []
    lanes: list[int] = []
    tokens: list[int | None] = []
    before = False
    for i in range(5000):
        flavour = FLAVOURS[i // 100 % len(FLAVOURS)]
        fmt = ("bf16", "fp16")[i // 50 % 2]
        x, w = decode(random_codes(rng, (2,), fmt, flavour).astype(np.uint16), fmt)
        use = bool(rng.random() < 0.8)
        swap = bool(rng.random() < 0.2)
        load = bool(rng.random() < 0.4)
        north = int(canonical(random_codes(rng, (1,), "fp32", flavour).view(np.float32))[0])
        lane = int(operand_words(np.array([x]))[0]) | use << USE | swap << SWAP
        dut.west.value = lane
        dut.west_weight.value = int(operand_words(np.array([w]))[0]) | load << VALID
        dut.north.value = north
        south, east = model.step(x, use, swap, north, w if load else None)
        sums.append(south)
        lanes.append(lane)
        tokens.append(None if east is None else int(operand_words(np.array([east]))[0]) | 1 << VALID)
        coverage.when(load, "load")
        coverage.when(load and before, "load after load")
        coverage.when(load and swap, "load in the cycle of a swap")
        coverage.when(swap, "swap")
        coverage.when(swap and not use, "swap of an unused beat")
        coverage.when(not use, "unused beat")
        coverage.when(not use and not load and not swap, "bubble")
        before = load
        await edge
        if i >= 2:
            seen = int(dut.south.value)
            assert seen == sums[i - 2], f"cycle {i}: south is {seen:#010x}, should be {sums[i - 2]:#010x}"
        if i >= 1:
            assert int(dut.east.value) == lanes[i - 1], f"cycle {i}: the lane that went east changed"
            token = int(dut.east_weight.value)
            want = tokens[i - 1]
            if want is None:
                assert not token >> VALID & 1, f"cycle {i}: a weight went east that none had replaced"
            else:
                assert token == want, f"cycle {i}: weight {token:#x} went east, should be {want:#x}"
    coverage.require_all()
