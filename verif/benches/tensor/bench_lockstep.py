"""Both forms of the array in lockstep: every output on every cycle, whatever goes in."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import load
from rtl.contract.kinds import Kind
from rtl.contract.timing import array_latency
from verif.agents.beat_coverage import dot_bins, note_dots, note_sparse, note_tiles, sparse_bins, tile_bins
from verif.agents.beat_source import BeatSource, Profile
from verif.agents.beats import BeatPacker
from verif.agents.bench import Bench, manifest
from verif.bench import Run, noticed_by
from verif.checks.coverage import Coverage

_TILED = load("small", ["tensor.cols=8", "tensor.nvfp4=true"])
"""Four row groups in the smallest array that has them, and every kind of beat."""
_SIZES = (
    "tiny",
    load("tiny", ["tensor.mx=false"]),
    load("small", ["tensor.rows=16", "tensor.cols=8"]),
    load("small", ["tensor.rows=16", "tensor.cols=8", "tensor.sparsity=false"]),
    "small",
)

_PLANTED = (
    "native array: rows are added in descending order",
    "native array: sums leave one cycle early",
    "native array: a swap takes effect one beat late",
    "native array: a swap reaches beats that entered just before it",
    "native array: rows outside `active` are multiplied too",
    "native array: a stationary beat reaches rows outside `active` too",
    "native array: a swap reaches only the active rows",
    "native array: every row group of a beat is taken for a head",
    *noticed_by(
        "agree_on_special_values",
        "native array: a NaN keeps its sign and payload",
        "native array: subnormal numbers are flushed to zero",
        "native array: product and sum are rounded one after the other",
        "native array: the halves of an FP32 are exchanged",
    ),
    *noticed_by(
        "agree_on_dot_products",
        "native array: a scale is ignored",
        "native array: a dot product is rounded on the way",
        "native array: E5M2 times E5M2 is summed in double precision",
        "native array: a pair is taken for four",
        "native array: an infinity is split like a number",
        "native array: a scale of 0xff is a number",
    ),
    *noticed_by(
        "agree_on_sparse_products",
        "native array: a slot is ignored",
        "native array: a swap does not bring the slots",
        "native array: every pattern is taken for 4:16",
        "native array: sparse weights meet the numbers of the next four rows",
    ),
    *noticed_by(
        "agree_on_row_tiles",
        "native array: a head is ignored",
        "native array: sums of every row group have the latency of the last one",
        "native array: the ticket is that of quadrant 0",
    ),
    *noticed_by(
        "agree_on_transposes",
        "native array: a shift brings nothing from the row group above",
        "native array: a swap after a shift alone is forgotten",
        "native array: a NaN that is transposed becomes canonical",
    ),
)

RUNS = (
    Run("array_lockstep", config=_TILED, faults=_PLANTED, slow=True),
    *(Run("array_lockstep", config=size, planted=False, seeds=(1,), regress=True) for size in _SIZES),
)

_LOOK = 64
"""Cycles from one look at the count of mismatches to the next."""
TENSOR = manifest().config.tensor
NUMBERS = (Kind.ONE, Kind.HIGH, Kind.LOW)
DOTS = ((Kind.PAIR, Kind.QUAD) if TENSOR.mx else ()) + ((Kind.QUAD_E4M3,) if TENSOR.nvfp4 else ())
SPARSE = (Kind.SPARSE,) if TENSOR.sparsity else ()
FORMATS = ("bf16", "fp16", "tf32", "e4m3fn", "e4m3", "e5m2")
ELEMENTS = ("e4m3fn", "e5m2")
LEGACY = ("e4m3", "e5m2")

coverage = Coverage(
    "lockstep",
    [
        "load during stream", "swap during load", "swap without load", "bubble", "empty array", "partial moving",
        "partial stationary", "no active row", "quadrants differ", "dtypes differ", "reset in flight", *FORMATS,
    ],
)  # fmt: skip
TILES = Coverage("lockstep.tiles", tile_bins((*NUMBERS, *DOTS, *SPARSE)))
PAIRS = Coverage("lockstep.dots", sorted({*dot_bins(ELEMENTS), *dot_bins(LEGACY)}) if DOTS else [])
PATTERNS = Coverage("lockstep.sparse", sparse_bins(TENSOR.groups) if SPARSE else [])
SHIFTS = Coverage(
    "lockstep.transposes", ["shift", "shift during stream", "shift from group to group", "swap after a shift"]
)


class LockstepBench(Bench):
    """Drives both forms; the device itself compares."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.pack = BeatPacker(self.cfg)
        self.moving = [getattr(dut, f"moving__{q}") for q in range(4)]
        self.stationary = [getattr(dut, f"stationary__{q}") for q in range(4)]
        self.shifted = False

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
        """Random beats after a reset, then an empty array; `resets` more on the way, at any time."""
        latency = array_latency(self.cfg.tensor)
        at = {int(i) for i in self.rng.integers(cycles // 4, cycles, resets)}
        edge = RisingEdge(self.clk)
        since = latency
        source = BeatSource(self.cfg, self.rng, profile)
        await self.reset(1)
        for i in range(cycles):
            moving, stationary = source.next()
            self.note(moving, stationary, since, latency, source)
            since = 0 if moving is not None else since + 1
            self.drive(moving, stationary)
            if i in at:
                coverage.when(since < latency, "reset in flight")
                self.dut.rst.value = 1
                source = BeatSource(self.cfg, self.rng, profile)
            await edge
            if i in at:
                self.dut.rst.value = 0
            if i % _LOOK == 0:
                self.compare()
        self.drive(None, None)
        for _ in range(latency + 2):
            await edge
        compared = self.compare()
        self.dut._log.info("%d rows compared", compared)
        assert compared > cycles // 10, f"only {compared} rows left the array in {cycles} cycles"

    def compare(self) -> int:
        """Rows that the device has compared."""
        compared, mismatches = int(self.dut.compared.value), int(self.dut.mismatches.value)
        assert mismatches == 0, f"the forms differ in {mismatches} of {compared} rows"
        return compared

    def note(self, moving: Any, stationary: Any, since: int, latency: int, source: BeatSource) -> None:
        """Which situations this cycle makes."""
        groups = self.cfg.tensor.groups
        shifting = stationary is not None and stationary.shifting(groups)
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
            SHIFTS.when(swaps and self.shifted, "swap after a shift")
            for kind, dtype in zip(moving.kinds, moving.dtypes, strict=True):
                coverage.when(kind == Kind.ONE, dtype)
            note_tiles(TILES, moving, groups)
            if DOTS:
                note_dots(PAIRS, moving, source)
            note_sparse(PATTERNS, moving, source)
        coverage.when(stationary is not None and not stationary.active.all(), "partial stationary")
        if stationary is not None:
            self.shifted = bool(shifting.any())
            SHIFTS.when(self.shifted, "shift")
            SHIFTS.when(self.shifted and moving is not None, "shift during stream")
            across = (shifting[1:] & shifting[:-1] & ~stationary.head[:: QUADRANTS // groups][1:]).any()
            SHIFTS.when(across or groups == 1, "shift from group to group")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_ordinary_numbers(dut: Any) -> None:
    """Streams with overlapping loads, all rows or parts of them, every format."""
    bench = LockstepBench(dut)
    await bench.begin()
    await bench.run(Profile(flavours=("normal", "narrow"), partial=0.3, numbers=FORMATS), 800)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_special_values(dut: Any) -> None:
    """NaN, infinities, zeros of both signs, all codes alike; halves of FP32 among them."""
    bench = LockstepBench(dut)
    await bench.begin()
    flavours = ("special", "normal", "bits", "normal", "normal")
    await bench.run(Profile(flavours=flavours, partial=1.0, swap=0.15, kinds=NUMBERS, numbers=FORMATS), 1000)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_subnormal_sums(dut: Any) -> None:
    """Products and sums about 2^-149 to 2^-120."""
    bench = LockstepBench(dut)
    await bench.begin()
    await bench.run(Profile(flavours=("subnormal",), partial=0.3, kinds=NUMBERS), 1000)


@cocotb.test(timeout_time=2, timeout_unit="ms", skip=not DOTS)
async def agree_on_dot_products(dut: Any) -> None:
    """Pairs and quads of both E4M3 with E5M2: ordinary, far apart, subnormal, special."""
    bench = LockstepBench(dut)
    await bench.begin()
    for elements in (ELEMENTS, LEGACY):
        for flavours in (("narrow", "normal"), ("special", "normal", "normal", "normal"), ("bits", "subnormal")):
            profile = Profile(kinds=DOTS, elements=elements, flavours=flavours, partial=0.5, swap=0.2)
            await bench.run(profile, 450)
    PAIRS.require_all()


@cocotb.test(timeout_time=2, timeout_unit="ms", skip=not SPARSE)
async def agree_on_sparse_products(dut: Any) -> None:
    """Every pattern, tags in order and not, in whole arrays and row tiles; ordinary, special, subnormal."""
    bench = LockstepBench(dut)
    await bench.begin()
    for flavours in (("narrow", "normal"), ("special", "normal", "normal", "bits"), ("subnormal",)):
        for tiles in (0.0, 0.03):
            profile = Profile(
                kinds=SPARSE, flavours=flavours, partial=0.5, swap=0.2, stationary=0.9, tiles=tiles, ragged=0.1
            )
            await bench.run(profile, 450)
    PATTERNS.require_all()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_transposes(dut: Any) -> None:
    """Raw bits that shift south beside matmuls, in whole and in row tiles."""
    bench = LockstepBench(dut)
    await bench.begin()
    kinds = (Kind.RAW, Kind.ONE, Kind.RAW, *DOTS, *SPARSE)
    for tiles in (0.0, 0.02):
        await bench.run(Profile(kinds=kinds, moving=0.95, stationary=0.9, swap=0.3, tiles=tiles), 900)
    SHIFTS.require_all()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_on_row_tiles(dut: Any) -> None:
    """Row tiles that come and go, each with a matmul of its own kind; then chains with heads and tails anywhere."""
    bench = LockstepBench(dut)
    await bench.begin()
    flavours = ("normal", "narrow", "special")
    await bench.run(
        Profile(flavours=flavours, kinds=(*NUMBERS, *DOTS, *SPARSE), partial=0.4, swap=0.2, tiles=0.02, stationary=0.9),
        3600,
    )
    await bench.run(Profile(flavours=flavours, partial=0.4, swap=0.1, tiles=0.05, stray=0.5), 1200)
    if bench.cfg.tensor.groups == QUADRANTS:
        TILES.require_all()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agree_under_stalls_and_resets(dut: Any) -> None:
    """Mostly bubbles, quadrants on their own, resets in flight, swaps at any time."""
    bench = LockstepBench(dut)
    await bench.begin()
    for kinds in ((Kind.ONE,), (Kind.QUAD,) if DOTS else NUMBERS, SPARSE or NUMBERS):
        profile = Profile(
            flavours=("normal", "narrow", "special"),
            kinds=kinds,
            numbers=FORMATS,
            moving=0.4,
            stationary=0.4,
            swap=0.3,
            partial=0.8,
            ragged=0.3,
            pause=0.05,
        )
        await bench.run(profile, 1800, resets=5)
    coverage.require_all()
