"""Sequencer: random programs of loops and branches show what the golden one shows, each word once and in order."""

from collections.abc import Sequence
from itertools import count, pairwise
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.isa import Cause
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
    filled_place,
)
from verif.agents.stall import STYLES, styled
from verif.bench import Run, noticed_by
from verif.benches.issue.sequencer_driver import COVERAGE, LIMIT, WINDOW, SequencerBench, Sparse, shown_of
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

_PLANTED = (
    "a branch goes one word too far",
    *noticed_by("operations_are_goldens", "registers are compared as unsigned", "zeros come in from the left"),
    "the value of a register is not signed",
    *noticed_by("a_field_takes_what_fits", "a sum that does not fit is cut"),
    *noticed_by("a_size_is_within_its_bound", "a size may be above its maximum"),
    *noticed_by(
        "refuses_what_is_no_word",
        "an operation reaches what is not there",
        "a refused word does not stop its queue",
    ),
    *noticed_by("words_far_away", "the clock of a sequencer stops too early"),
    *noticed_by("loads_what_hbm_has", "a register is loaded before its word is there"),
    *noticed_by("a_loop_in_the_window_is_fetched_once", "a window serves a word that is gone"),
    *noticed_by("a_fence_waits_until_all_is_dispatched", "a fence does not wait"),
)

RUNS = (Run("sequencer", options={"window": WINDOW, "limit": LIMIT}, faults=_PLANTED),)


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(style=STYLES)
async def shows_what_golden_shows(dut: Any, style: str) -> None:
    bench = SequencerBench(dut, style, STYLES[(STYLES.index(style) + 2) % len(STYLES)])
    bench.idle, bench.silent = styled("half", bench.rng), styled("mostly", bench.rng)
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
    for n in (count - 1, count, -1, -count):
        words += [sequence(operation(SeqOp.SEMAPHORE, 1, immediate=n), fence=fence) for fence in (True, False)]
    words.append(sequence(operation(SeqOp.LOAD, 1, ZERO, None, 5)))
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
async def loads_what_hbm_has(dut: Any) -> None:
    """Words whose numbers differ in each bit, by a register and an immediate or two registers; the last of HBM and the
    next, numbers below 0 and beyond 32 bits; one that HBM answers with an error."""
    bench = SequencerBench(dut)
    bench.silent = styled("half", bench.rng)
    await bench.start()
    words = bench.cfg.hbm.capacity_mib << 18
    most = (1 << 31) - 1
    ends = [(0, 0), (words, -1), (words - 1, 0), (words, 0), (0, -1), (-1, 0), (-5, 4), (-5, 5), (most, most)]
    ends += [(-most, -most), (most, 1 - most)]
    ends += [(1 << bit, -(1 << bit) + 7) for bit in range(31)]
    ends += [(1 << bit, int(bench.rng.integers(words >> 1))) for bit in range(words.bit_length() - 1)]
    for a, b in ends:
        for by_register in (False, True):
            sets = (operation(SeqOp.ADD, 1, ZERO, None, a), operation(SeqOp.ADD, 2, ZERO, None, b))
            load = operation(SeqOp.LOAD, 3, 1, 2) if by_register else operation(SeqOp.LOAD, 3, 1, None, b)
            want = await bench.run([sequence(*sets, load, fence=True), revealing(bench.rng, (1, 2, 3))])
            assert (want[-1].cause == 0) == (0 <= a + b < words and a + b != bench.broken)
    bench.breaks = 77
    for number in (76, 77, 78):
        for before in range(OPERATIONS):
            some = [operation(SeqOp.ADD, 3, 3, None, 1)] * before
            load = sequence(*some, operation(SeqOp.LOAD, 3, ZERO, None, number), fence=True)
            want = await bench.run([load, revealing(bench.rng, (3,))])
            assert want[-1].cause == (Cause.BUS_ERROR if number == 77 else Cause.NONE)


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
        [sequence(operation(SeqOp.SEMAPHORE, 7, immediate=n), fence=True) for n in (0, 5)] + seen,
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
            at, width, is_signed = filled_place(*FILLED[code])
            most = (1 << width - is_signed) - 1
            for had in (0, most, most + 1 if is_signed else most - 1):
                word = with_fills(1 | had << at, [(0, 0)] * turn + [(code, 5)])
                await bench.run([sequence(operation(SeqOp.ADD, 5, ZERO, None, value)), word])


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_size_is_within_its_bound(dut: Any) -> None:
    """Edges and random numbers against each other, by a register and by an immediate; what is refused shows no more."""
    bench = SequencerBench(dut)
    await bench.start()
    numbers = [*EDGES, *bench.rng.integers(-(1 << 31), 1 << 31, 4).tolist()]
    for a in numbers:
        for b in numbers:
            sets = (operation(SeqOp.ADD, 1, ZERO, None, a), operation(SeqOp.ADD, 2, ZERO, None, b))
            for bound in (operation(SeqOp.BOUND, 3, 1, 2), operation(SeqOp.BOUND, 3, 1, None, b)):
                want = await bench.run([sequence(*sets, bound), revealing(bench.rng, (1, 2, 3))])
                assert want[-1].cause == (Cause.NONE if 0 <= a <= b else Cause.BAD_SIZE)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_loop_without_end_is_refused(dut: Any) -> None:
    """One that shows nothing; one that shows a word each turn goes on."""
    bench = SequencerBench(dut)
    await bench.start()
    jump = operation(SeqOp.BRANCH_EQUAL, 0, ZERO, ZERO, 1)
    want = await bench.run([plain(bench.rng), sequence(), sequence(jump)])
    assert want[-1].cause == Cause.ENDLESS_LOOP and len(want) == 2
    for more in (LIMIT - 1, LIMIT):
        want = await bench.run([sequence()] * more + [plain(bench.rng)])
        assert want[-1].cause == (Cause.ENDLESS_LOOP if more == LIMIT else Cause.NONE)
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
async def words_far_away(dut: Any) -> None:
    """Loops at places that differ in every bit of a number, each left for the next; the last for the end."""
    bench = SequencerBench(dut)
    await bench.start()
    length = (1 << 31) - 1
    far = [(1 << bit) + int(bench.rng.integers(5)) for bit in range(5, 31)]
    places = [0, *bench.rng.permutation(far).tolist(), length]
    words: dict[int, int] = {}
    for here, there in pairwise(places):
        words[here] = sequence(operation(SeqOp.ADD, 40, ZERO, None, 0), operation(SeqOp.ADD, 41, ZERO, None, 3))
        words |= {here + n: plain(bench.rng) for n in (1, 2)}
        back = operation(SeqOp.BRANCH_LESS, 0, 40, 41, here + 1)
        words[here + 3] = sequence(operation(SeqOp.ADD, 40, 40, None, 1), back)
        words[here + 4] = sequence(operation(SeqOp.BRANCH_EQUAL, 0, ZERO, ZERO, there))
    assert len(await bench.run(Sparse(words, length), most=20_000)) == 6 * (len(places) - 1)


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
        assert int(dut.fetches.value) == stuck and int(dut.ended.value) == (not stuck and not want[-1].cause)
        assert [shown_of(word).index for word in bench.sink.taken] == [one.index for one in want[:shown]]
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
