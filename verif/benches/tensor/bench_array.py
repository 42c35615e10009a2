"""The systolic array against the golden model, in either form: sums, tickets and the cycle they leave in."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import load
from rtl.contract.kinds import Kind
from rtl.contract.timing import array_latency
from rtl.tensor.ports import sum_row
from verif.agents.beat_coverage import KIND_NAMES, note_sparse, note_tiles, sparse_bins, tile_bins
from verif.agents.beat_source import BeatSource, Profile
from verif.agents.beats import Beat, BeatPacker, expected_rows
from verif.agents.bench import Bench, manifest
from verif.bench import Run, noticed_by
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, note_outcomes, outcomes_of
from verif.golden.tensor import TensorState

_TILED = load("small", ["tensor.cols=8", "tensor.nvfp4=true"])
"""Four row groups in the smallest array that has them, and every kind of beat."""

_PLANTED = (
    "the last 8 rows of moving beats are one cycle late",
    "the last 8 columns of sums are one cycle late",
    "rows outside `active` are multiplied too",
    "a stationary beat reaches rows outside `active` too",
    "the ticket is that of the following beat",
    "a swap without `valid` counts",
    "sums leave at their group without a tail",
    *noticed_by(
        "runs_row_tiles_side_by_side",
        "every pattern is taken for 4:16",
        "the numbers of a sparse beat go to the other four rows of their tile",
        "a head of a chain is ignored",
        "a head of a chain stays in column 0",
        "the sums of row groups 0 and 1 are exchanged",
    ),
    *noticed_by(
        "transposes_beside_matmuls",
        "a weight that was not raw leaves as what it became",
        "a shift goes on from one row group to the next at a head",
    ),
)

# The array in array_lockstep is the structural one, and its model is there already: an array's takes minutes.
RUNS = (
    Run("array_lockstep", config=_TILED, faults=_PLANTED, slow=True),
    Run("array_lockstep", planted=False, seeds=(1,), regress=True),
    Run("array", seeds=(1,), mutated=True, regress=True),
)

# A chain starts from +0, so that only an underflow in its last row can give -0: too rare in a large array.
COMMON = [kind for kind in OUTCOMES if kind != "negative zero"]
coverage = Coverage("array", [*COMMON, "load during stream", "partial moving", "bubble", "full rate"])
TENSOR = manifest().config.tensor
NUMBERS = (Kind.ONE, Kind.HIGH, Kind.LOW)
DOTS = ((Kind.PAIR, Kind.QUAD) if TENSOR.mx else ()) + ((Kind.QUAD_E4M3,) if TENSOR.nvfp4 else ())
SPARSE = (Kind.SPARSE,) if TENSOR.sparsity else ()
TILES = Coverage("array.tiles", tile_bins((*NUMBERS, *DOTS, *SPARSE)))
PATTERNS = Coverage("array.sparse", sparse_bins(TENSOR.groups) if SPARSE else [])
# Without E8M0 scales the smallest product is 2^-36; E4M3FN scales and elements have no infinity.
OUT_OF_REACH = {(Kind.PAIR, "subnormal"), (Kind.QUAD_E4M3, "subnormal"), (Kind.QUAD_E4M3, "infinite")}
REACHED = [(kind, outcome) for kind in DOTS for outcome in COMMON if (kind, outcome) not in OUT_OF_REACH]
OUTCOME_BINS = [f"{KIND_NAMES[kind]}: {outcome}" for kind, outcome in REACHED]
RESULTS = Coverage("array.dots", [*OUTCOME_BINS, "transposed"])

_MIXED = (("normal", "narrow", "special", "subnormal"),)
"""Flavours of an array of more than 32 rows, where the golden model takes most of the time."""
Cycle = tuple[Beat | None, Beat | None]


class ArrayBench(Bench):
    """Drives beats and checks the sums of every cycle."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        tensor = self.cfg.tensor
        self.pack = BeatPacker(self.cfg)
        self.latencies = [array_latency(tensor, group) for group in range(tensor.groups)]
        self.state = TensorState(tensor.rows, tensor.cols, tensor.groups)
        self.layout = sum_row(self.cfg)
        self.moving = [getattr(dut, f"moving__{q}") for q in range(4)]
        self.stationary = [getattr(dut, f"stationary__{q}") for q in range(4)]

    def drive(self, cycle: Cycle) -> None:
        """Put one cycle's beats on the ports."""
        words = self.pack.moving(cycle[0]) + self.pack.stationary(cycle[1])
        for handle, word in zip(self.moving + self.stationary, words, strict=True):
            handle.value = word

    async def run(self, beats: list[Cycle]) -> None:
        """All beats, then as many cycles as the last sums need; compares in every cycle."""
        groups = range(self.cfg.tensor.groups)
        expected = {
            (row.beat + self.latencies[row.group], row.group, row.raw): row for row in expected_rows(self.state, beats)
        }
        for row in expected.values():
            if row.kind in DOTS:
                for outcome, count in outcomes_of(row.codes).items():
                    RESULTS.when(count and (row.kind, outcome) in REACHED, f"{KIND_NAMES[row.kind]}: {outcome}")
            elif not row.raw:
                note_outcomes(coverage, row.codes)
            RESULTS.when(row.raw and row.codes.any(), "transposed")
        ports = [
            (g, raw, getattr(self.dut, f"{'transposed' if raw else 'sums'}__{g}")) for g in groups for raw in (0, 1)
        ]
        data_at = self.layout["data"].offset
        ticket_at = self.layout["ticket"].offset
        valid_at = self.layout["valid"].offset
        mask = (1 << 32 * self.cfg.tensor.cols) - 1
        edge = RisingEdge(self.clk)
        for i in range(len(beats) + self.latencies[-1] + 1):
            self.drive(beats[i] if i < len(beats) else (None, None))
            await edge
            for group, raw, port in ports:
                word = int(port.value)
                row = expected.get((i, group, bool(raw)))
                where = f"row group {group}{', transposed' if raw else ''}"
                valid = bool(word >> valid_at & 1)
                assert valid == (row is not None), f"cycle {i}, {where}: valid is {valid}"
                if row is None:
                    continue
                seen = np.frombuffer((word >> data_at & mask).to_bytes(4 * len(row.codes), "little"), dtype="<u4")
                wrong = np.flatnonzero(seen != row.codes)
                assert not len(wrong), (
                    f"beat {row.beat}, {where}: {len(wrong)} of {len(seen)} differ; column {wrong[0]} is "
                    f"{seen[wrong[0]]:#010x}, should be {row.codes[wrong[0]]:#010x}"
                )
                assert word >> ticket_at & 0xFF == row.ticket, f"beat {row.beat}, {where}: wrong ticket"

    def beats(self, profile: Profile, count: int) -> list[Cycle]:
        """Random beats."""
        source = BeatSource(self.cfg, self.rng, profile)
        beats: list[Cycle] = []
        for _ in range(count):
            moving, stationary = source.next()
            beats.append((moving, stationary))
            coverage.when(moving and stationary, "load during stream")
            coverage.when(moving and not moving.active.all(), "partial moving")
            coverage.when(moving is None and stationary is None, "bubble")
            if moving is not None:
                note_tiles(TILES, moving, self.cfg.tensor.groups)
                note_sparse(PATTERNS, moving, source)
        return beats

    async def begin(self) -> None:
        """Idle inputs, reset."""
        self.drive((None, None))
        await self.start()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def multiplies_with_zero_weights_after_reset(dut: Any) -> None:
    """Nothing loaded: every sum is +0 or, for specials, NaN."""
    bench = ArrayBench(dut)
    await bench.begin()
    await bench.run(bench.beats(Profile(flavours=("normal", "special"), stationary=0, swap=0, partial=0.5), 60))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def streams_at_full_rate_while_loading(dut: Any) -> None:
    """A beat in every cycle, the next load behind each swap, as an engine would do it."""
    bench = ArrayBench(dut)
    await bench.begin()
    cols = bench.cfg.tensor.cols
    source = BeatSource(
        bench.cfg, bench.rng, Profile(flavours=("normal", "narrow"), swap=0, partial=0, pause=0, moving=1, stationary=1)
    )
    beats: list[Cycle] = []
    for i in range(5 * cols):
        moving, stationary = source.next()
        assert moving is not None
        moving.swap[:] = i % cols == 0
        beats.append((moving, stationary))
    coverage.hit("full rate")
    await bench.run(beats)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def computes_random_beats(dut: Any) -> None:
    """Loads, swaps, streams and bubbles in any order; rows and quadrants on and off; all flavours of numbers."""
    bench = ArrayBench(dut)
    await bench.begin()
    count = 350 if bench.cfg.tensor.rows <= 32 else 60
    for flavours in (("normal", "narrow"), ("normal", "normal", "normal", "special", "bits"), ("subnormal",)):
        profile = Profile(flavours=flavours, partial=0.6, ragged=0.1, swap=0.1)
        await bench.run(bench.beats(profile, count))
    coverage.require_all()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def runs_row_tiles_side_by_side(dut: Any) -> None:
    """The rows as one, two or four tiles, each with a matmul of its own kind, divided anew at any time."""
    bench = ArrayBench(dut)
    await bench.begin()
    small = bench.cfg.tensor.rows <= 32
    kinds = (*NUMBERS, *DOTS, *SPARSE)
    for _ in range(3 if small else 1):
        profile = Profile(flavours=("normal", "narrow"), kinds=kinds, partial=0.3, swap=0.2, tiles=0.02, stationary=0.9)
        await bench.reset(1)
        bench.state = TensorState(bench.cfg.tensor.rows, bench.cfg.tensor.cols, bench.cfg.tensor.groups)
        await bench.run(bench.beats(profile, 500 if small else 60))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def joins_chains_at_any_head_and_tail(dut: Any) -> None:
    """Heads and tails in and out of order."""
    bench = ArrayBench(dut)
    await bench.begin()
    profile = Profile(flavours=("normal", "narrow"), partial=0.3, swap=0.1, tiles=0.1, stray=0.5)
    small = bench.cfg.tensor.rows <= 32
    await bench.run(bench.beats(profile, 400 if small else 60))
    if small and bench.cfg.tensor.groups == QUADRANTS:
        TILES.require_all()


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=not DOTS)
async def sums_dot_products(dut: Any) -> None:
    """Pairs and quads of E4M3 and E5M2, ordinary, far apart, special, subnormal; every row as the golden says."""
    bench = ArrayBench(dut)
    await bench.begin()
    rows, cols = bench.cfg.tensor.rows, bench.cfg.tensor.cols
    infinities = ("e4m3fn", "e5m2", "e5m2")  # only E5M2 has any
    one_by_one = (("normal", "narrow"), ("special", "normal"), ("subnormal",))
    for flavours in one_by_one if rows <= 32 else _MIXED:
        for kind in DOTS:
            profile = Profile(
                kinds=(kind,), flavours=flavours, elements=infinities, partial=0.3, swap=0.3, stationary=0.95
            )
            await bench.reset(1)
            bench.state = TensorState(rows, cols, bench.cfg.tensor.groups)
            count = 12 if rows > 32 else 400 if "special" in flavours else 150  # infinite sums are rare
            beats = bench.beats(profile, 2 * cols + count)
            for moving, _ in beats[::3]:
                if moving is not None:  # a lone product, or infinities and subnormals drown in the others
                    moving.active &= np.arange(rows) == bench.rng.integers(rows)
            await bench.run(beats)


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=not SPARSE)
async def sums_sparse_products(dut: Any) -> None:
    """Weights with tags of every pattern, in whole arrays and row tiles; every row as the golden says."""
    bench = ArrayBench(dut)
    await bench.begin()
    tensor = bench.cfg.tensor
    small = tensor.rows <= 32
    one_by_one = (("normal", "narrow"), ("special", "normal", "normal", "normal"), ("subnormal",))
    for flavours in one_by_one if small else _MIXED:
        for tiles in (0.0, 0.03):
            profile = Profile(
                kinds=SPARSE, flavours=flavours, partial=0.3, swap=0.2, stationary=0.95, tiles=tiles, ragged=0.05
            )
            await bench.reset(1)
            bench.state = TensorState(tensor.rows, tensor.cols, tensor.groups)
            await bench.run(bench.beats(profile, 2 * tensor.cols + (320 if small else 36)))
    if small:
        PATTERNS.require_all()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def transposes_beside_matmuls(dut: Any) -> None:
    """Raw bits of every pattern leave south, unchanged, while other beats stream."""
    bench = ArrayBench(dut)
    await bench.begin()
    count = max(400, 2 * (bench.cfg.tensor.rows + bench.cfg.tensor.cols))
    for untimely in (0.02, 0.3) if bench.cfg.tensor.rows <= 32 else (0.1,):
        kinds = (Kind.RAW, Kind.ONE, Kind.RAW)
        profile = Profile(kinds=kinds, moving=1, stationary=0.95, swap=0.3, tiles=0.01, untimely=untimely)
        await bench.reset(1)
        bench.state = TensorState(bench.cfg.tensor.rows, bench.cfg.tensor.cols, bench.cfg.tensor.groups)
        await bench.run(bench.beats(profile, count))
    if bench.cfg.tensor.rows <= 32:
        RESULTS.require_all()
