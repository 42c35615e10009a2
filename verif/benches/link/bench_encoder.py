"""Encoder against the golden codes: every flit, under every mix of stalls, and after flits cut short."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.link import CRC_ORDER, FLIT_BYTES
from verif.agents.bench import Bench
from verif.agents.flits import beats_of, random_info
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSink, StreamSource
from verif.bench import REST, Fault, Run
from verif.checks.coverage import Coverage
from verif.golden.flit import encode

_FAULTS = (
    Fault(
        "a beat that waits in the encoder is overwritten by the next", hangs=True
    ),  # it is lost, and the bench waits for it
    REST,
)

RUNS = (
    Run("flit_encoder", config="x8", faults=_FAULTS),
    Run("flit_encoder", config="x16", planted=False, seeds=(1,), regress=True),
    Run("flit_encoder", config="x8", options={"order": "low_first"}, planted=False, seeds=(1,), regress=True),
)

coverage = Coverage(
    "encoder", ["waits", "bubble", "full rate", "flit cut short", "equal flits in a row", "tail of the input ignored"]
)


class EncoderBench(Bench):
    """Source -> encoder -> sink."""

    def flits(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Flits to send, their last bytes anything, and what must leave."""
        sent = self.rng.integers(0, 256, (count, FLIT_BYTES), np.uint8)
        sent[:, :242] = random_info(self.rng, count)
        if count > 3:
            sent[1, :242] = sent[0, :242]
            coverage.hit("equal flits in a row")
        coverage.when((sent[:, 242:] != 0).any(), "tail of the input ignored")
        return sent, encode(sent[:, :242], self.options.get("order", CRC_ORDER))

    async def through(self, words: list[int], source: str, sink: str) -> list[int]:
        """What leaves when `words` enter."""
        into = StreamSource(self, "i", styled(source, self.rng))
        out = StreamSink(self, "o", styled(sink, self.rng))
        await self.start()
        into.send(words)
        await out.count(len(words))
        await self.cycles(8)
        return out.taken

    def compare(self, got: list[int], want: list[int]) -> None:
        """Beat by beat."""
        assert len(got) == len(want), f"{len(got)} beats left, {len(want)} entered"
        for n, (a, b) in enumerate(zip(got, want)):
            assert a == b, f"beat {n} is {a:#x}, should be {b:#x}"


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(source=STYLES, sink=STYLES)
async def is_the_golden_code(dut: Any, source: str, sink: str) -> None:
    """Random flits."""
    bench = EncoderBench(dut)
    size = bench.cfg.beat_bytes
    sent, want = bench.flits(40)
    words = [w for flit in sent for w in beats_of(flit, size)]
    got = await bench.through(words, source, sink)
    bench.compare(got, [w for flit in want for w in beats_of(flit, size)])
    coverage.when(sink != "never", "waits")
    coverage.when(source != "never", "bubble")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def keeps_the_rate(dut: Any) -> None:
    """A beat a cycle, one cycle after it was taken."""
    bench = EncoderBench(dut)
    sent, want = bench.flits(20)
    size = bench.cfg.beat_bytes
    words = [w for flit in sent for w in beats_of(flit, size)]
    into = StreamSource(bench, "i")
    out = StreamSink(bench, "o")
    await bench.start()
    into.send(words)
    await bench.cycles(len(words) + 4)  # the source's first word, the register, the sink
    assert len(out.taken) == len(words), f"{len(out.taken)} of {len(words)} beats"
    bench.compare(out.taken, [w for flit in want for w in beats_of(flit, size)])
    coverage.hit("full rate")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_flit_cut_short_leaves_nothing_behind(dut: Any) -> None:
    """The beats of a flit that begins again pass; the next whole flit has the right codes."""
    bench = EncoderBench(dut)
    size = bench.cfg.beat_bytes
    sent, want = bench.flits(30)
    given: list[int] = []
    expected: list[int] = []
    for raw, good in zip(sent, want):
        begun = beats_of(raw, size)[: int(bench.rng.integers(0, bench.cfg.beats))]
        coverage.when(begun, "flit cut short")
        given += begun + beats_of(raw, size)
        expected += begun + beats_of(good, size)
    bench.compare(await bench.through(given, "half", "half"), expected)
    coverage.require_all()
