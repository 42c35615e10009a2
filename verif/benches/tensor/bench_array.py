"""The systolic array against the golden model, in either form: sums, tickets and the cycle they leave in."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.base.memory_port import QUADRANTS
from rtl.contract.timing import array_latency
from rtl.tensor.ports import sum_row
from verif.agents.beats import Beat, BeatPacker, BeatSource, Profile, expected_sums, note_tiles
from verif.agents.bench import Bench
from verif.checks.coverage import Coverage
from verif.checks.outcomes import OUTCOMES, note_outcomes
from verif.golden.tensor import TensorState

# A chain starts from +0, so that only an underflow in its last row can give -0: too rare in a large array.
KINDS = [kind for kind in OUTCOMES if kind != "negative zero"]
coverage = Coverage("array", [*KINDS, "load during stream", "partial moving", "bubble", "full rate"])
TILES = Coverage("array.tiles", ["whole array", "halves", "quarters", "different tickets in a cycle", "chains overlap"])

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
            (i + self.latencies[group], group): (i, ticket, sums)
            for i, group, ticket, sums in expected_sums(self.state, beats)
        }
        for _, _, sums in expected.values():
            note_outcomes(coverage, sums)
        outs = [getattr(self.dut, f"sums__{group}") for group in groups]
        data_at = self.layout["data"].offset
        ticket_at = self.layout["ticket"].offset
        edge = RisingEdge(self.clk)
        for i in range(len(beats) + self.latencies[-1] + 1):
            self.drive(beats[i] if i < len(beats) else (None, None))
            await edge
            for group in groups:
                word = int(outs[group].value)
                want = expected.get((i, group))
                assert word & 1 == (want is not None), f"cycle {i}, row group {group}: valid is {word & 1}"
                if want is None:
                    continue
                entered, ticket, sums = want
                seen = np.frombuffer((word >> data_at).to_bytes(4 * len(sums), "little"), dtype="<u4")
                wrong = np.flatnonzero(seen != sums)
                assert not len(wrong), (
                    f"beat {entered}, row group {group}: {len(wrong)} of {len(sums)} sums differ; column {wrong[0]} is "
                    f"{seen[wrong[0]]:#010x}, should be {sums[wrong[0]]:#010x}"
                )
                assert word >> ticket_at & 0xFF == ticket, f"beat {entered}, row group {group}: wrong ticket"

    def beats(self, profile: Profile, count: int) -> list[Cycle]:
        """Random beats."""
        source = BeatSource(self.cfg, self.rng, profile)
        beats = [source.next() for _ in range(count)]
        for moving, stationary in beats:
            coverage.when(moving and stationary, "load during stream")
            coverage.when(moving and not moving.active.all(), "partial moving")
            coverage.when(moving is None and stationary is None, "bubble")
            if moving is not None and moving.valid.all():
                note_tiles(TILES, moving, self.cfg.tensor.groups)
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
    count = 500 if bench.cfg.tensor.rows <= 32 else 200
    for flavours in (("normal", "narrow"), ("normal", "normal", "normal", "special", "bits"), ("subnormal",)):
        profile = Profile(flavours=flavours, partial=0.6, ragged=0.1, swap=0.1)
        await bench.run(bench.beats(profile, count))
    coverage.require_all()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def runs_row_tiles_side_by_side(dut: Any) -> None:
    """The rows as one, two or four tiles, divided anew all the time; then heads and tails anywhere."""
    bench = ArrayBench(dut)
    await bench.begin()
    count = 500 if bench.cfg.tensor.rows <= 32 else 200
    for stray in (0.0, 0.5):
        profile = Profile(flavours=("normal", "narrow"), partial=0.3, swap=0.1, tiles=0.1, stray=stray)
        await bench.run(bench.beats(profile, count))
    if bench.cfg.tensor.groups == QUADRANTS:
        TILES.require_all()
