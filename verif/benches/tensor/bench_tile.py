"""Tile of processing elements against the golden model; the bench skews what goes in."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.timing import PE_ROW_CYCLES
from rtl.numeric.operand import OPERAND
from rtl.tensor.tile import MOVING_BITS, TILE, WEIGHT_BITS
from verif.agents.bench import Bench
from verif.agents.operands import operand_words
from verif.agents.values import random_codes
from verif.checks.coverage import Coverage
from verif.golden.numeric import F32, U32, canonical, decode, fused
from verif.golden.tensor import TensorState

coverage = Coverage("tile", ["load", "swap", "load during stream", "unused row", "sums from the north", "bubble"])


def values(rng: np.random.Generator, flavour: str) -> F32:
    """Eight BF16 values."""
    return decode(random_codes(rng, (TILE,), "bf16", flavour).astype(np.uint16), "bf16")


class Stimulus:
    """What enters in each cycle, already skewed, and what must leave."""

    def __init__(self, bench: Bench, cycles: int):
        rng = bench.rng
        length = cycles + PE_ROW_CYCLES * TILE + 2 * TILE + 2
        self.west = np.zeros((length, TILE), dtype=np.uint64)
        self.weight = np.zeros((length, TILE), dtype=np.uint64)
        self.north = np.zeros((length, TILE), dtype=np.uint32)
        self.south: dict[tuple[int, int], int] = {}  # (cycle, column): sum
        state = TensorState(TILE, TILE)
        for i in range(cycles):
            flavour = "special" if rng.random() < 0.05 else "normal"
            moving = rng.random() < 0.8
            loading = rng.random() < 0.5
            swap = moving and rng.random() < 0.1
            use = (rng.random(TILE) < 0.9) if moving else np.zeros(TILE, np.bool_)
            x = values(rng, flavour)
            north = canonical(rng.standard_normal(TILE).astype(np.float32))
            if swap:
                state.swap()
            sums: U32 = north
            for r in range(TILE):
                lane = operand_words(x)[r] | int(use[r]) << OPERAND.size | int(swap) << (OPERAND.size + 1)
                self.west[i + PE_ROW_CYCLES * r, r] = lane
                if use[r]:
                    sums = canonical(fused(np.full(TILE, x[r]), state.working[r], sums.view(np.float32)))
            for c in range(TILE):
                self.north[i + c, c] = north[c]
                self.south[i + PE_ROW_CYCLES * TILE + c, c] = int(sums[c])
            if loading:
                w = values(rng, flavour)
                active = rng.random(TILE) < 0.9
                for r in np.flatnonzero(active):
                    self.weight[i + PE_ROW_CYCLES * r, r] = operand_words(w)[r] | 1 << OPERAND.size
                state.push(w, active)
            coverage.when(loading, "load")
            coverage.when(swap, "swap")
            coverage.when(loading and moving, "load during stream")
            coverage.when(moving and not use.all(), "unused row")
            coverage.when(not moving, "bubble")
        coverage.hit("sums from the north")


def joined(lanes: Any, size: int) -> int:
    """One vector of lanes."""
    word = 0
    for i, lane in enumerate(lanes.tolist()):
        word |= lane << (i * size)
    return word


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def chains_rows_and_shifts_weights(dut: Any) -> None:
    """Streams with loads, swaps and unused rows; every sum of every column in its cycle."""
    bench = Bench(dut)
    dut.west.value = 0
    dut.west_weight.value = 0
    dut.north.value = 0
    await bench.start()
    stimulus = Stimulus(bench, 800)
    edge = RisingEdge(bench.clk)
    for i in range(len(stimulus.west)):
        dut.west.value = joined(stimulus.west[i], MOVING_BITS)
        dut.west_weight.value = joined(stimulus.weight[i], WEIGHT_BITS)
        dut.north.value = joined(stimulus.north[i], 32)
        await edge
        word = int(dut.south.value)
        for c in range(TILE):
            want = stimulus.south.get((i, c))
            seen = word >> (32 * c) & 0xFFFFFFFF
            assert want is None or seen == want, f"cycle {i}, column {c}: is {seen:#010x}, should be {want:#010x}"
    coverage.require_all()
