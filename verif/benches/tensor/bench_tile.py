"""Tile of processing elements against the golden model; the bench skews what goes in."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.timing import PE_ROW_CYCLES
from rtl.tensor.lanes import RAW_WORD
from rtl.tensor.tile import TILE
from verif.agents.array_lanes import ArrayLanes
from verif.agents.bench import Bench, manifest
from verif.agents.operands import operand_words
from verif.agents.values import random_codes
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.numeric import F32, U32, canonical, decode, fused
from verif.golden.tensor import TensorState
from verif.golden.tensor_cells import number_cells

RUNS = (Run("tile", faults=EVERY),)

coverage = Coverage(
    "tile", ["load", "swap", "load during stream", "unused row", "sums from the north", "bubble", "shift"]
)


def values(rng: np.random.Generator, flavour: str) -> F32:
    """Eight BF16 values."""
    return decode(random_codes(rng, (TILE,), "bf16", flavour).astype(np.uint16), "bf16")


class Stimulus:
    """What enters in each cycle, already skewed, and what must leave."""

    def __init__(self, bench: Bench, cycles: int):
        rng = bench.rng
        pack = ArrayLanes(bench.cfg.tensor)
        length = cycles + PE_ROW_CYCLES * TILE + 2 * TILE + 2
        self.west = np.zeros((length, TILE), dtype=object)
        self.weight = np.zeros((length, TILE), dtype=object)
        self.north = np.zeros((length, TILE), dtype=np.uint32)
        self.south: dict[tuple[int, int], int] = {}  # (cycle, column): sum
        self.north_raw = np.zeros((length, TILE), dtype=object)
        self.south_raw: dict[tuple[int, int], int] = {}
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
                self.west[i + PE_ROW_CYCLES * r, r] = pack.moving(int(operand_words(x)[r]), bool(use[r]), swap)
                if use[r]:
                    sums = canonical(fused(np.full(TILE, x[r]), state.working[r]["value"], sums.view(np.float32)))
            for c in range(TILE):
                self.north[i + c, c] = north[c]
                self.south[i + PE_ROW_CYCLES * TILE + c, c] = int(sums[c])
            if loading and rng.random() < 0.1:
                self.shift(state, i, rng)
                coverage.hit("shift")
            elif loading:
                w = values(rng, flavour)
                active = rng.random(TILE) < 0.9
                for r in np.flatnonzero(active):
                    self.weight[i + PE_ROW_CYCLES * r, r] = pack.weight(int(operand_words(w)[r]))
                state.push(w, active)
            coverage.when(loading, "load")
            coverage.when(swap, "swap")
            coverage.when(loading and moving, "load during stream")
            coverage.when(moving and not use.all(), "unused row")
            coverage.when(not moving, "bubble")
        coverage.hit("sums from the north")

    def shift(self, state: TensorState, i: int, rng: np.random.Generator) -> None:
        """All shadow weights one row south: numbers come back as they went in, from a tile above."""
        pack = ArrayLanes(manifest().config.tensor)
        above = values(rng, "normal")
        for r in range(TILE):
            self.weight[i + PE_ROW_CYCLES * r, r] = pack.shift()
        for c in range(TILE):
            self.north_raw[i + c, c] = int(operand_words(above)[c])
            self.south_raw[i + PE_ROW_CYCLES * TILE + c, c] = int(operand_words(state.shadow["value"][-1])[c])
        state.shadow[1:] = state.shadow[:-1].copy()
        state.shadow[0] = number_cells(above)


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
    dut.north_raw.value = 0
    await bench.start()
    stimulus = Stimulus(bench, 800)
    pack = ArrayLanes(bench.cfg.tensor)
    edge = RisingEdge(bench.clk)
    for i in range(len(stimulus.west)):
        dut.west.value = joined(stimulus.west[i], pack.moving_bits)
        dut.west_weight.value = joined(stimulus.weight[i], pack.weight_bits)
        dut.north_raw.value = joined(stimulus.north_raw[i], RAW_WORD.size)
        dut.north.value = joined(stimulus.north[i], 32)
        await edge
        word = int(dut.south.value)
        raw = int(dut.south_raw.value)
        for c in range(TILE):
            want = stimulus.south.get((i, c))
            seen = word >> (32 * c) & 0xFFFFFFFF
            assert want is None or seen == want, f"cycle {i}, column {c}: is {seen:#010x}, should be {want:#010x}"
            want = stimulus.south_raw.get((i, c))
            seen = raw >> (RAW_WORD.size * c) & ((1 << RAW_WORD.size) - 1)
            assert want is None or seen == want, f"cycle {i}, column {c}: {seen:#x} shifted out, should be {want:#x}"
    coverage.require_all()
