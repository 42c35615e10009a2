"""Who gives a sequencer words and takes what it shows, beside the golden one."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.isa import Cause
from rtl.contract.sequence import FILLED, SeqOp
from rtl.issue.sequencer import SHOWN
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.agents.stall import never, styled
from verif.agents.stream import StreamSink
from verif.benches.issue.sequencer_top import loaded, semaphore
from verif.checks.coverage import Coverage
from verif.golden.sequencer import Sequencer, Shown

__all__ = ["COVERAGE", "LIMIT", "WINDOW", "SequencerBench", "Sparse", "shown_of"]

WINDOW, LIMIT = 8, 24
"""With which the unit is built."""

_FILLS = [f"fill {name}{f' from {bit}' if name.startswith('imm') else ''}" for name, bit in FILLED[1:]]
_SEEN = (
    "a loop looks first",
    "a loop looks behind",
    "ended",
    "refused",
    "asked for again",
    "from the window",
    "fence waits",
    "words are missing",
)
COVERAGE = Coverage("sequencer", [*(op.name for op in SeqOp if op), *_FILLS, *_SEEN])
shown_of = opened(SHOWN)


class SequencerBench(Bench):
    """The unit, who gives it words, and who takes what it shows."""

    def __init__(self, dut: Any, style: str = "never", gaps: str = "never"):
        super().__init__(dut)
        self.sink = StreamSink(self, "o", styled(style, self.rng))
        self.gaps: Iterator[bool] = styled(gaps, self.rng)  # when no word comes
        self.asked = styled(gaps, self.rng)  # when none is asked for again
        self.program: Sequence[int] = ()
        self.salt = 0
        self.given = self.seeks = self.ready_late = 0
        self.idle = never()  # when it is not drained
        dut.start.value = dut.count.value = dut.salt.value = dut.seek__ready.value = dut.words__valid.value = 0
        dut.broken.value = 0
        dut.drained.value = dut.answers.value = 1
        self.broken = 0  # word of HBM that answers with an error
        self.breaks: int | None = None  # which one is to; None: any
        self.silent: Iterator[bool] = never()  # when HBM does not answer
        cocotb.start_soon(self._fetch())
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        """`fetches` in every cycle: a word is taken only with it, and without one nothing else happens then."""
        dut, edge = self.dut, RisingEdge(self.clk)
        while True:
            await edge
            if int(dut.rst.value) or int(dut.start.value):
                continue
            fetches, shows, seeks = (int(pin.value) for pin in (dut.fetches, dut.o__valid, dut.seek__valid))
            assert fetches or not int(dut.words__ready.value), "a word is taken although none is wanted"
            assert not (fetches and seeks), "a word is wanted and asked for again"
            assert not (fetches and shows) or int(dut.words__valid.value), "a word is shown that has not come"
            assert not int(dut.ended.value) or not (fetches or shows or seeks), "something happens behind the end"

    async def _fetch(self) -> None:
        """Words in order, from where they are asked for; one that is offered is withdrawn by that."""
        dut, edge, at, offered, willing = self.dut, RisingEdge(self.clk), 0, False, False
        while True:
            await edge
            if int(dut.start.value):
                at = 0
                offered = False
            if offered and int(dut.words__ready.value):
                at, offered = at + 1, False
                self.given += 1
            if willing and int(dut.seek__valid.value):
                at, offered = int(dut.seek__payload.value), False
                self.seeks += 1
            if not offered and at < len(self.program) and not next(self.gaps):
                dut.words__payload.value = self.program[at]
                offered = True
            dut.words__valid.value = int(offered)
            willing = not next(self.asked)
            dut.seek__ready.value = int(willing)
            dut.drained.value = int(not next(self.idle))
            dut.answers.value = int(not next(self.silent))

    async def begin(self, program: Sequence[int]) -> None:
        """Start it."""
        self.sink.taken.clear()
        self.given = self.seeks = 0
        self.salt = int(self.rng.integers(1 << 32))
        any_word = int(self.rng.integers(self.cfg.hbm.capacity_mib << 18))
        self.broken = any_word if self.breaks is None else self.breaks
        self.dut.broken.value = self.broken
        self.dut.salt.value, self.dut.count.value, self.dut.start.value = self.salt, len(program), 1
        self.program = ()
        await self.cycles(1)
        self.dut.start.value = 0
        await self.cycles(1)
        self.program = program

    def golden(self, program: Sequence[int]) -> list[Shown]:
        """What must be shown."""
        words = self.cfg.hbm.capacity_mib << 18

        def load(number: int) -> int | Cause:
            if not 0 <= number < words:
                return Cause.OUT_OF_RANGE
            return Cause.BUS_ERROR if number == self.broken else loaded(number, self.salt)

        count = self.cfg.issue.semaphores
        machine = Sequencer(program, lambda n: semaphore(n, self.salt), count, LIMIT, load)
        found = list(islice(machine, 20_000))
        assert len(found) < 20_000, "the program does not end"
        return found

    async def run(self, program: Sequence[int], most: int = 0) -> list[Shown]:
        """Start it, wait until it has ended, at most so many cycles (0: by its length), compare."""
        await self.begin(program)
        want = self.golden(program)
        refused = bool(want) and want[-1].cause != 0
        for _ in range(most or 400 * (len(want) + len(program) + LIMIT + 1)):
            await self.cycles(1)
            if len(self.sink.taken) >= len(want) and (refused or int(self.dut.ended.value)):
                break
        await self.cycles(20)
        got = [shown_of(word) for word in self.sink.taken]
        for n, (one, other) in enumerate(zip(got, want)):
            assert (one.index, one.cause) == (other.index, other.cause), (
                f"shown {n}: word {one.index}, cause {one.cause}, must be {other.index}, {other.cause}"
            )
            assert other.cause or one.word == other.word, (
                f"shown {n}, word {one.index}: {one.word ^ other.word:#x} differs"
            )
        assert len(got) == len(want), f"{len(got)} words are shown, must be {len(want)}"
        assert int(self.dut.ended.value) == (not refused) and int(self.dut.sent.value) == len(want)
        COVERAGE.hit("refused" if refused else "ended")
        return want


class Sparse(Sequence[int]):
    """A program of `length` words, most of them 0."""

    def __init__(self, words: dict[int, int], length: int):
        self.words, self.length = words, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, at: int) -> int:
        return self.words.get(at, 0)
