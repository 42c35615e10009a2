"""Both forms of the array in lockstep: every output on every cycle, whatever goes in."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from rtl.base.memory_port import QUADRANTS
from rtl.contract.timing import array_latency
from verif.agents.beats import BeatPacker, BeatSource, Profile, note_tiles
from verif.agents.bench import Bench
from verif.checks.coverage import Coverage

coverage = Coverage(
    "lockstep",
    [
        "load during stream", "swap during load", "swap without load", "bubble", "empty array", "partial moving",
        "partial stationary", "no active row", "quadrants differ", "dtypes differ", "fp16", "bf16", "reset in flight",
    ],
)  # fmt: skip
TILES = Coverage(
    "lockstep.tiles", ["whole array", "halves", "quarters", "different tickets in a cycle", "chains overlap"]
)


class LockstepBench(Bench):
    """Drives both forms; the device itself compares."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.pack = BeatPacker(self.cfg)
        self.moving = [getattr(dut, f"moving__{q}") for q in range(4)]
        self.stationary = [getattr(dut, f"stationary__{q}") for q in range(4)]

    def drive(self, moving: Any, stationary: Any) -> None:
        """Put a beat on each port."""
        for handle, word in zip(self.moving, self.pack.moving(moving), strict=True):
            handle.value = word
        for handle, word in zip(self.stationary, self.pack.stationary(stationary), strict=True):
            handle.value = word

    async def begin(self) -> None:
        """Reset, counters at 0."""
        self.drive(None, None)
        self.dut.clear.value = 1
        await self.start()
        self.dut.clear.value = 0

    async def run(self, profile: Profile, cycles: int, *, resets: int = 0) -> None:
        """Random beats, then an empty array; `resets` of them on the way, at any time."""
        source = BeatSource(self.cfg, self.rng, profile)
        latency = array_latency(self.cfg.tensor)
        at = {int(i) for i in self.rng.integers(cycles // 4, cycles, resets)}
        edge = RisingEdge(self.clk)
        since = latency
        for i in range(cycles):
            moving, stationary = source.next()
            self.note(moving, stationary, since, latency)
            since = 0 if moving is not None else since + 1
            self.drive(moving, stationary)
            if i in at:
                coverage.when(since < latency, "reset in flight")
                self.dut.rst.value = 1
            await edge
            if i in at:
                self.dut.rst.value = 0
        self.drive(None, None)
        for _ in range(latency + 2):
            await edge
        compared = int(self.dut.compared.value)
        mismatches = int(self.dut.mismatches.value)
        self.dut._log.info("%d rows of sums compared, %d mismatches", compared, mismatches)
        assert compared > cycles // 8, f"only {compared} rows of sums left the array in {cycles} cycles"
        assert mismatches == 0, f"the forms differ in {mismatches} of {compared} rows of sums"

    def note(self, moving: Any, stationary: Any, since: int, latency: int) -> None:
        """Which situations this cycle makes."""
        coverage.when(moving is None and since < 3, "bubble")
        coverage.when(moving is None and since > latency, "empty array")
        if moving is not None:
            swaps = (moving.swap & moving.valid).any()
            coverage.when(stationary is not None, "load during stream")
            coverage.when(stationary is not None and swaps, "swap during load")
            coverage.when(stationary is None and swaps, "swap without load")
            coverage.when(not moving.active.all(), "partial moving")
            coverage.when(not moving.active.any(), "no active row")
            coverage.when(len(set(moving.valid.tolist())) > 1, "quadrants differ")
            coverage.when(len(set(moving.dtypes)) > 1, "dtypes differ")
            coverage.hit(moving.dtypes[0])
            if moving.valid.all():
                note_tiles(TILES, moving, self.cfg.tensor.groups)
        coverage.when(stationary is not None and not stationary.active.all(), "partial stationary")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_ordinary_numbers(dut: Any) -> None:
    """Streams with overlapping loads, all rows or parts of them."""
    bench = LockstepBench(dut)
    await bench.begin()
    await bench.run(Profile(flavours=("normal", "narrow"), partial=0.3), 2500)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_special_values(dut: Any) -> None:
    """NaN, infinities, zeros of both signs, all codes alike."""
    bench = LockstepBench(dut)
    await bench.begin()
    await bench.run(Profile(flavours=("special", "normal", "bits", "normal", "normal"), partial=1.0, swap=0.15), 2500)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_subnormal_sums(dut: Any) -> None:
    """Products and sums about 2^-149 to 2^-120."""
    bench = LockstepBench(dut)
    await bench.begin()
    await bench.run(Profile(flavours=("subnormal",), partial=0.3), 2500)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_under_stalls_and_resets(dut: Any) -> None:
    """Mostly bubbles, quadrants on their own, resets in flight, swaps at any time."""
    bench = LockstepBench(dut)
    await bench.begin()
    profile = Profile(
        flavours=("normal", "narrow", "special"),
        moving=0.4,
        stationary=0.4,
        swap=0.3,
        partial=0.8,
        ragged=0.3,
        pause=0.05,
    )
    await bench.run(profile, 4000, resets=6)
    coverage.require_all()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_row_tiles(dut: Any) -> None:
    """Row tiles that come and go, each with its own matmul; then chains with heads and tails anywhere."""
    bench = LockstepBench(dut)
    await bench.begin()
    for stray in (0.0, 0.5):
        await bench.run(
            Profile(flavours=("normal", "narrow", "special"), partial=0.4, swap=0.1, tiles=0.05, stray=stray), 2500
        )
    if bench.cfg.tensor.groups == QUADRANTS:
        TILES.require_all()
