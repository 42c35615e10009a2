"""Sequencer: random programs of loops and branches show what the golden one shows, each word once and in order."""

from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.sequence import (
    BRANCHES,
    FILL,
    FILL_AT,
    FILLED,
    FILLS,
    OPERATION,
    OPERATIONS,
    OPERATIONS_AT,
    REGISTERS,
    SeqOp,
)
from rtl.issue.sequencer import SHOWN
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.agents.stall import STYLES, never, styled
from verif.agents.stream import StreamSink
from verif.bench import Run, noticed_by
from verif.benches.issue.sequencer_top import semaphore
from verif.checks.coverage import Coverage
from verif.checks.sequence_programs import (
    EDGES,
    ZERO,
    Maker,
    operation,
    plain,
    random_program,
    revealing,
    sequence,
    with_fills,
)
from verif.golden.sequencer import Sequencer, Shown

WINDOW, LIMIT = 8, 24

_PLANTED = (
    "a branch goes one word too far",
    *noticed_by("operations_are_goldens", "registers are compared as unsigned", "zeros come in from the left"),
    "the value of a register is not signed",
    *noticed_by("a_field_takes_what_fits", "a sum that does not fit is cut"),
    *noticed_by(
        "refuses_what_is_no_word",
        "an operation reaches what is not there",
        "a refused word does not stop its queue",
    ),
    *noticed_by("a_loop_in_the_window_is_fetched_once", "a window serves a word that is gone"),
    *noticed_by("a_fence_waits_until_all_is_dispatched", "a fence does not wait"),
)

RUNS = (Run("sequencer", options={"window": WINDOW, "limit": LIMIT}, faults=_PLANTED),)

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
_shown = opened(SHOWN)


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
        dut.drained.value = 1
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

    async def begin(self, program: Sequence[int]) -> None:
        """Start it."""
        self.sink.taken.clear()
        self.given = self.seeks = 0
        self.salt = int(self.rng.integers(1 << 32))
        self.dut.salt.value, self.dut.count.value, self.dut.start.value = self.salt, len(program), 1
        self.program = ()
        await self.cycles(1)
        self.dut.start.value = 0
        await self.cycles(1)
        self.program = program

    def golden(self, program: Sequence[int]) -> list[Shown]:
        """What must be shown."""
        machine = Sequencer(program, lambda n: semaphore(n, self.salt), self.cfg.issue.semaphores, LIMIT)
        found = list(islice(machine, 20_000))
        assert len(found) < 20_000, "the program does not end"
        return found

    async def run(self, program: Sequence[int]) -> list[Shown]:
        """Start it, wait until it has ended, compare."""
        await self.begin(program)
        want = self.golden(program)
        refused = bool(want) and want[-1].bad
        for _ in range(400 * (len(want) + len(program) + LIMIT + 1)):
            await self.cycles(1)
            if len(self.sink.taken) >= len(want) and (refused or int(self.dut.ended.value)):
                break
        await self.cycles(20)
        got = [_shown(word) for word in self.sink.taken]
        for n, (one, other) in enumerate(zip(got, want)):
            assert (one.index, one.bad) == (other.index, other.bad), (
                f"shown {n}: word {one.index}, must be {other.index}"
            )
            assert other.bad or one.word == other.word, (
                f"shown {n}, word {one.index}: {one.word ^ other.word:#x} differs"
            )
        assert len(got) == len(want), f"{len(got)} words are shown, must be {len(want)}"
        assert int(self.dut.ended.value) == (not refused) and int(self.dut.sent.value) == len(want)
        COVERAGE.hit("refused" if refused else "ended")
        return want


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(style=STYLES)
async def shows_what_golden_shows(dut: Any, style: str) -> None:
    bench = SequencerBench(dut, style, STYLES[(STYLES.index(style) + 2) % len(STYLES)])
    bench.idle = styled("half", bench.rng)
    await bench.start()
    for _ in range(40):
        size = int(bench.rng.choice((1, 5, 12, 30)))
        await bench.run(random_program(bench.rng, size, bench.cfg.issue.semaphores, COVERAGE.hit))
        COVERAGE.when(bench.seeks, "asked for again")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def refuses_what_is_no_word(dut: Any) -> None:
    """Each rule broken by one bit or one step, behind a word that is shown; its neighbour that breaks none."""
    bench = SequencerBench(dut)
    await bench.start()
    good = operation(SeqOp.ADD, 1, 1, None, 1)
    known = {op.value for op in SeqOp}
    words = [good & ~31 | code for code in range(32)]
    words = [sequence(good, one) for one in words]
    words += [sequence(good, good | 1 << OPERATION.offset("reserved") + n) for n in range(8)]
    words += [sequence(operation(op, 0, ZERO, ZERO) | 1 << OPERATION.offset("immediate_b")) for op in SeqOp if op >= 16]
    words += [sequence(good) | 1 << n for n in range(8, OPERATIONS_AT)]
    words += [sequence(good) | 1 << n for n in range(OPERATIONS_AT + OPERATIONS * OPERATION.width, 1024)]
    count = bench.cfg.issue.semaphores
    words += [sequence(operation(SeqOp.SEMAPHORE, 1, immediate=n)) for n in (count - 1, count, -1, -count)]
    jump = operation(SeqOp.BRANCH_EQUAL, 0, ZERO, ZERO)
    words += [sequence(jump | n << OPERATION.offset("immediate")) for n in (3, 4, 1 << 31, (1 << 32) - 1)]
    at = FILL.offset("register")
    fills = [FILL.pack(field=1, register=ZERO) | 1 << FILL.offset("reserved") + n for n in range(4)]
    fills += [FILL.pack(field=0, register=1 << n) for n in range(6)] + [n | ZERO << at for n in range(len(FILLED), 64)]
    for place in range(FILLS):
        words += [plain(bench.rng) | fill << FILL_AT + place * FILL.width for fill in fills]
    for word in words:
        want = await bench.run([plain(bench.rng), word, plain(bench.rng)])
        assert want[0].index == 0
    assert {*range(1, 12), 12} < known  # the codes above were both


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def operations_are_goldens(dut: Any) -> None:
    """Each on edges and random numbers, b a register or the immediate, and each branch; every result is seen."""
    bench = SequencerBench(dut)
    await bench.start()
    numbers = [*EDGES, *bench.rng.integers(-(1 << 31), 1 << 31, 6).tolist()]
    for op in [op for op in SeqOp if 0 < op < SeqOp.SEMAPHORE]:
        for a in numbers:
            program: list[int] = []
            for first in range(0, len(numbers), FILLS):
                some = numbers[first : first + FILLS]
                program.append(sequence(operation(SeqOp.ADD, 10, ZERO, None, a)))
                program.append(sequence(*(operation(SeqOp.ADD, 11 + n, ZERO, None, b) for n, b in enumerate(some))))
                program.append(sequence(*(operation(op, 20 + n, 10, 11 + n) for n in range(len(some)))))
                program.append(revealing(bench.rng, range(20, 20 + len(some))))
                program.append(sequence(*(operation(op, 20 + n, 10, None, b) for n, b in enumerate(some))))
                program.append(revealing(bench.rng, range(20, 20 + len(some))))
            await bench.run(program)
    for op in BRANCHES:
        for a in numbers:
            program = []
            for b in numbers:
                over = len(program) + 3
                sets = (operation(SeqOp.ADD, 60, ZERO, None, a), operation(SeqOp.ADD, 61, ZERO, None, b))
                program.append(sequence(*sets, operation(op, 0, 60, 61, over)))
                program += [plain(bench.rng), plain(bench.rng)]
            await bench.run(program)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_register_keeps_what_it_has(dut: Any) -> None:
    """All 64, and that a start makes them 0."""
    bench = SequencerBench(dut)
    await bench.start()
    values = bench.rng.integers(-(1 << 31), 1 << 31, REGISTERS).tolist()
    sets = [operation(SeqOp.SUBTRACT, n, n, None, value) for n, value in enumerate(values)]
    groups = [range(n, n + FILLS) for n in range(0, REGISTERS, FILLS)]
    seen = [revealing(bench.rng, group) for group in groups]
    for program in (
        [sequence(*sets[n : n + OPERATIONS]) for n in range(0, REGISTERS, OPERATIONS)] + seen,
        seen,
        [sequence(operation(SeqOp.SEMAPHORE, 7, immediate=n)) for n in (0, 5)] + seen,
    ):
        await bench.run(program)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_field_takes_what_fits(dut: Any) -> None:
    """Of each field the least and the most that go in, and one less and more; the value that wraps of the others."""
    bench = SequencerBench(dut)
    await bench.start()
    for code in range(1, len(FILLED)):
        for value in (-1, 0, 1, 0xFF, 0x100, 0xFFF, 0x1000, 0x7FFF, 0x8000, -0x8000, -0x8001, 0xFFFF, 0x1_0000,
                      0xFF_FFFF, 0x100_0000, (1 << 31) - 1, -(1 << 31)):  # fmt: skip
            turn = int(bench.rng.integers(FILLS))
            word = with_fills(1, [(0, 0)] * turn + [(code, 5)])  # all of the field is 0
            await bench.run([sequence(operation(SeqOp.ADD, 5, ZERO, None, value)), word])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_loop_without_end_is_refused(dut: Any) -> None:
    """One that shows nothing; one that shows a word each turn goes on."""
    bench = SequencerBench(dut)
    await bench.start()
    jump = operation(SeqOp.BRANCH_EQUAL, 0, ZERO, ZERO, 1)
    want = await bench.run([plain(bench.rng), sequence(), sequence(jump)])
    assert want[-1].bad and len(want) == 2
    for more in (LIMIT - 1, LIMIT):
        want = await bench.run([sequence()] * more + [plain(bench.rng)])
        assert want[-1].bad == (more == LIMIT)
    make = Maker()
    _counted(make, [plain(bench.rng)], 3 * LIMIT)
    assert len(await bench.run(make.program())) == 3 * LIMIT


def _counted(make: Maker, body: Sequence[int], times: int) -> None:
    make.add(operation(SeqOp.AND, 40, ZERO), operation(SeqOp.ADD, 41, ZERO, None, times))
    top = make.label()
    make.place(top)
    make.words += body
    make.add(operation(SeqOp.ADD, 40, 40, None, 1), operation(SeqOp.BRANCH_LESS, 0, 40, 41), goes={1: top})


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_loop_in_the_window_is_fetched_once(dut: Any) -> None:
    """Bodies around the window's size: what fits is never asked for again, what does not is each turn."""
    bench = SequencerBench(dut)
    await bench.start()
    for body in range(1, WINDOW + 4):
        make = Maker()
        make.words += [plain(bench.rng) for _ in range(int(bench.rng.integers(WINDOW)))]
        _counted(make, [plain(bench.rng) for _ in range(body)], 5)
        make.words.append(plain(bench.rng))
        program = make.program()
        await bench.run(program)
        fits = body + 1 <= WINDOW
        assert bench.seeks == (0 if fits else 4), f"a body of {body} words is asked for {bench.seeks} times"
        assert bench.given == len(program) + (0 if fits else 4 * (body + 1))
        COVERAGE.when(fits, "from the window")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def takes_the_cycles_it_says(dut: Any) -> None:
    """Between words that are shown, with a fetch and a sink that always can."""
    bench = SequencerBench(dut)
    await bench.start()
    times: list[int] = []
    now = 0

    async def clock() -> None:
        nonlocal now
        edge = RisingEdge(bench.clk)
        while True:
            await edge
            now += 1

    cocotb.start_soon(clock())
    bench.sink.on_taken = lambda word: times.append(now)
    some = operation(SeqOp.ADD, 1, 1, None, 1)

    async def between(*words: int) -> int:
        times.clear()
        await bench.run([plain(bench.rng), *words, plain(bench.rng)])
        return times[-1] - times[0]

    alone = await between()
    assert alone == 1, alone
    for n in range(OPERATIONS + 1):
        took = await between(sequence(*[some] * n))
        assert took == alone + 1 + n + (n < OPERATIONS), (n, took)
    took = await between(with_fills(plain(bench.rng), [(1, ZERO)]))
    assert took == alone + 1 + FILLS + 1 + 1, took
    make = Maker()
    _counted(make, [plain(bench.rng)], 4)
    times.clear()
    await bench.run(make.program())
    assert times[3] - times[2] == 2 + 1 + 2, times  # two words from the window, the body, two operations


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def tells_that_words_are_missing(dut: Any) -> None:
    """The fetch breaks off after any number of words: what can be shown is, then `fetches` stays."""
    bench = SequencerBench(dut)
    await bench.start()
    for _ in range(25):
        program = random_program(bench.rng, 20, bench.cfg.issue.semaphores)
        left = int(bench.rng.integers(1, len(program)))
        bench.gaps = (n >= left for n in count())
        await bench.begin(program)
        seen = -1
        while seen < len(bench.sink.taken):  # more than LIMIT words of operations take
            seen = len(bench.sink.taken)
            await bench.cycles(400)
        want = bench.golden(program)
        shown = len(bench.sink.taken)
        stuck = shown < len(want)
        assert int(dut.fetches.value) == stuck and int(dut.ended.value) == (not stuck and not want[-1].bad)
        assert [_shown(word).index for word in bench.sink.taken] == [one.index for one in want[:shown]]
        COVERAGE.when(stuck, "words are missing")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_fence_waits_until_all_is_dispatched(dut: Any) -> None:
    bench = SequencerBench(dut)
    await bench.start()
    waits = iter([True] * 200)
    bench.idle = (next(waits, False) for _ in iter(int, 1))
    await bench.begin([plain(bench.rng), sequence(fence=True), plain(bench.rng)])
    await bench.cycles(100)
    assert len(bench.sink.taken) == 1
    await bench.cycles(150)
    assert len(bench.sink.taken) == 2
    COVERAGE.hit("fence waits")


@cocotb.test()
async def covered(dut: Any) -> None:
    COVERAGE.require_all()
