"""Decoder against the golden codes: every verdict, byte and cycle, whatever damage, pauses and cuts there are."""

from collections.abc import Sequence
from typing import Any

import cocotb
import numpy as np

from rtl.contract.link import CRC_ORDER, DLP_AT, DLP_BYTES, FEC_GROUPS
from rtl.link.codec.decoder import Decoder
from verif.agents.bench import Bench
from verif.agents.flits import DAMAGE, beats_of, random_flits
from verif.agents.stall import STYLES, styled
from verif.bench import Run
from verif.checks.coverage import Coverage
from verif.golden.flit import Decoded, decode

_PLANTED = (
    "the decoder swaps groups 1 and 2 of the FEC",
    "the pad of a short group is repaired",
    "a wrong check byte cannot be repaired",
    "the CRC of a flit is not looked at",
    "repairs do not reach the syndromes of the CRC",
    "a flit to be refused is judged by its codes",
    "the DLP leaves the decoder as it came",
    "refused flits are repaired too",
    "groups of refused flits are counted",
    "the decoder's sums of a flit go on into the next",
)

RUNS = (
    Run("flit_decoder", config="x8", faults=_PLANTED),
    Run("flit_decoder", config="x16", planted=False, seeds=(1,), regress=True),
    Run("flit_decoder", config="x8", options={"order": "low_first"}, planted=False, seeds=(1,), regress=True),
)

coverage = Coverage(
    "decoder",
    [
        *DAMAGE, "good", "refused by codes", "refused on demand", "none repaired", "one group repaired",
        "two groups repaired", "three groups repaired", "hopeless group", "located in a refused flit", "dlp repaired",
        "pause in a flit", "flits back to back", "flit cut short", "flit too long", "reset in flight",
    ],
)  # fmt: skip

_REPAIRED = ("none repaired", "one group repaired", "two groups repaired", "three groups repaired")


class DecoderBench(Bench):
    """Drives beats; holds what leaves, in every cycle, against what must."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.size, self.beats = self.cfg.beat_bytes, self.cfg.beats
        self.order = self.options.get("order", CRC_ORDER)
        self.cycle = 0
        self.due: dict[int, dict[str, int]] = {}  # cycle: outputs
        self.known: dict[bytes, tuple[Decoded, int]] = {}  # flits made so far, and where their verdict is
        self.checked = 0
        self.idle()

    def idle(self) -> None:
        """No beat in this cycle."""
        self.dut.i_valid.value = 0

    async def tick(self) -> None:
        """A cycle: compare what is shown in it."""
        await self.edge
        dut, want = self.dut, self.due.pop(self.cycle, None)
        shown = int(dut.o_valid.value)
        assert shown == (want is not None), f"cycle {self.cycle}: o_valid is {shown}"
        if want is not None:
            self.checked += 1
            for name, value in want.items():
                seen = int(getattr(dut, name).value)
                assert seen == value, f"cycle {self.cycle}: {name} is {seen:#x}, should be {value:#x}"
        self.cycle += 1

    async def put(self, word: int, refuse: bool = False) -> None:
        """A beat."""
        self.dut.i_valid.value = 1
        self.dut.i.value = word
        self.dut.i_refuse.value = int(refuse)
        await self.tick()
        self.idle()

    async def pause(self, stall: Any) -> bool:
        """Cycles without a beat; whether there were any."""
        paused = False
        while next(stall):
            paused = True
            await self.tick()
        return paused

    def expect(self, flit: np.ndarray, refuse: bool) -> None:
        """The flit whose last beat has just entered."""
        seen, row = self.known[flit.tobytes()]
        good = bool(seen.valid[row]) and not refuse
        leaves = seen.flits[row] if good else flit
        groups = int(seen.corrected[row]) if good else 0
        located = seen.located[row]
        fix = sum((1 | int(seen.byte[row, g]) << 1) << (9 * g) for g in range(FEC_GROUPS) if located[g])
        dlp = leaves[DLP_AT : DLP_AT + DLP_BYTES].tobytes()
        coverage.hit("good" if good else "refused on demand" if seen.valid[row] else "refused by codes")
        coverage.when(good, _REPAIRED[groups])
        coverage.when(not good and located.any(), "located in a refused flit")
        coverage.when(good and dlp != flit[DLP_AT : DLP_AT + DLP_BYTES].tobytes(), "dlp repaired")
        coverage.when(seen.hopeless[row].any(), "hopeless group")
        verdict = {"o_good": int(good), "o_groups": groups, "o_dlp": int.from_bytes(dlp, "big"), "o_fix": fix}
        first = self.cycle - 1 + Decoder.DELAY
        for n, word in enumerate(beats_of(leaves, self.size)):
            self.due[first + n] = {"o": word, **verdict}

    async def send(self, flit: np.ndarray, stall: Any, refuse: bool = False) -> None:
        """A whole flit, with pauses."""
        rng = self.rng
        paused = False
        for n, word in enumerate(beats_of(flit, self.size)):
            paused |= await self.pause(stall) and n > 0
            # refuse counts with the last beat only
            await self.put(word, refuse if n == self.beats - 1 else bool(rng.integers(2)))
        coverage.when(paused, "pause in a flit")
        self.expect(flit, refuse)

    async def drained(self) -> None:
        """Until all that is due has left, and some more."""
        for _ in range(self.beats + 8):
            await self.tick()
        assert not self.due
        assert self.checked

    def learn(self, flits: np.ndarray) -> np.ndarray:
        """The same flits, their verdicts known."""
        seen = decode(flits, self.order)
        self.known |= {flit.tobytes(): (seen, n) for n, flit in enumerate(flits)}
        return flits

    def random(self, kinds: Sequence[str]) -> np.ndarray:
        """Random flits with such damage, in the order of this build."""
        return random_flits(self.rng, kinds, self.cfg.lanes, self.order)

    def flits(self, kinds: Sequence[str]) -> np.ndarray:
        """Random flits with such damage."""
        for kind in kinds:
            coverage.hit(kind)
        return self.learn(self.random(kinds))


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(style=STYLES)
async def is_the_golden_verdict(dut: Any, style: str) -> None:
    """Every kind of damage, some flits refused on demand."""
    bench = DecoderBench(dut)
    await bench.start()
    stall = styled(style, bench.rng)
    for flit in bench.flits(DAMAGE * 20):
        await bench.send(flit, stall, refuse=bool(bench.rng.random() < 0.15))
        coverage.when(style == "never", "flits back to back")
    await bench.drained()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_byte_is_located(dut: Any) -> None:
    """One wrong byte at each of 256 places, and bursts of 3 bytes of a lane from every start."""
    bench = DecoderBench(dut)
    await bench.start()
    stall = styled("never", bench.rng)
    lanes = bench.cfg.lanes
    single = np.arange(256)
    burst = np.arange(256 - 2 * lanes)
    flits = bench.random(["clean"] * (len(single) + len(burst)))
    flits[single, single] ^= bench.rng.integers(1, 256, len(single), np.uint8)
    for n in range(3):
        flits[len(single) + burst, burst + n * lanes] ^= bench.rng.integers(1, 256, len(burst), np.uint8)
    for flit in bench.learn(flits):
        await bench.send(flit, stall)
    await bench.drained()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def cut_and_long_flits_leave_nothing(dut: Any) -> None:
    """A flit that begins again, or has a beat too many, or none before; and resets."""
    bench = DecoderBench(dut)
    rng = bench.rng
    await bench.start()
    stall = styled("rarely", rng)
    others = bench.random(["one"] * 200)
    for n, flit in enumerate(bench.flits(["spread"] * 200)):
        words = beats_of(others[n], bench.size)
        way = int(rng.integers(5))
        if way == 1:
            for word in words[: int(rng.integers(1, bench.beats))]:
                await bench.put(word)
            coverage.hit("flit cut short")
        elif way == 2:  # the last beat comes one later, or twice
            middle = words[0] & ~1
            for word in [words[0], *([middle] * (bench.beats - 1)), words[-1], words[-1]]:
                await bench.put(word)
            coverage.hit("flit too long")
        elif way == 3:  # it ends early, and goes on
            await bench.put(words[0] | 2)
            for word in words[1:]:
                await bench.put(word)
        elif way == 4 and n % 4 == 0:
            dut.rst.value = 1
            coverage.when(bench.due, "reset in flight")
            await bench.tick()
            bench.due.clear()
            dut.rst.value = 0
            await bench.tick()
        await bench.send(flit, stall)
    await bench.drained()
    coverage.require_all()
