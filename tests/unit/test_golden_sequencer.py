"""The golden sequencer against what its programs mean in Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.contract.isa import INSTRUCTION, Cause
from rtl.contract.sequence import FILLED, SEQUENCE, SeqOp
from verif.checks.sequence_programs import (
    ZERO,
    Maker,
    operation,
    plain,
    random_program,
    scrambled,
    sequence,
    with_fills,
)
from verif.golden.sequencer import Sequencer, Shown

WORDS = st.integers(-(1 << 31), (1 << 31) - 1)


def shown(words: list[int], limit: int = 1 << 16) -> list[Shown]:
    return list(Sequencer(words, lambda n: 100 + n, 64, limit))


def value(op: SeqOp, a: int, b: int) -> int:
    """What the operation leaves, seen in an immediate."""
    sets = operation(SeqOp.ADD, 1, ZERO, None, a), operation(SeqOp.ADD, 2, ZERO, None, b), operation(op, 3, 1, 2)
    code = FILLED.index(("imm1", 32))
    (one,) = shown([sequence(*sets), with_fills(1, [(code, 3)])])
    found = INSTRUCTION.unpack(one.word)["imm1"] >> 32
    return int(np.uint32(found).view(np.int32))


@settings(max_examples=200, deadline=None)
@given(WORDS, WORDS)
def test_operations_are_those_of_32_bit_integers(a: int, b: int) -> None:
    x, y = np.array([a, b], np.int32)
    with np.errstate(over="ignore"):
        want = {
            SeqOp.ADD: x + y,
            SeqOp.SUBTRACT: x - y,
            SeqOp.MULTIPLY: x * y,
            SeqOp.SHIFT_LEFT: x << (y & 31),
            SeqOp.SHIFT_RIGHT: x >> (y & 31),
            SeqOp.AND: x & y,
            SeqOp.OR: x | y,
            SeqOp.MIN: min(x, y),
            SeqOp.MAX: max(x, y),
            SeqOp.EQUAL: int(x == y),
            SeqOp.LESS: int(x < y),
        }
    assert {op: value(op, a, b) for op in want} == {op: int(number) for op, number in want.items()}


@pytest.mark.parametrize("times", [1, 2, 7, 100])
def test_a_loop_of_n_issues_n(times: int) -> None:
    make = Maker()
    make.add(operation(SeqOp.ADD, 40, ZERO, None, 0), operation(SeqOp.ADD, 41, ZERO, None, times))
    top = make.label()
    make.place(top)
    make.words.append(with_fills(1, [(FILLED.index(("dst_offset", 0)), 42)]))
    on = operation(SeqOp.ADD, 40, 40, None, 1), operation(SeqOp.ADD, 42, 42, None, 64)
    make.add(*on, operation(SeqOp.BRANCH_LESS, 0, 40, 41), goes={2: top})
    found = [INSTRUCTION.unpack(one.word)["dst_offset"] for one in shown(make.program())]
    assert found == [64 * n for n in range(times)]


def test_a_field_that_overflows_is_refused_and_the_last() -> None:
    word = INSTRUCTION.pack(opcode=1, src0_step0=32767)
    grows = with_fills(word, [(FILLED.index(("src0_step0", 0)), 1)])
    for by, bad in ((0, False), (1, True), (-65535, False), (-65536, True)):
        found = shown([sequence(operation(SeqOp.ADD, 1, ZERO, None, by)), grows, 1])
        assert [one.cause != 0 for one in found] == ([True] if bad else [False, False])
        assert bad or INSTRUCTION.unpack(found[0].word)["src0_step0"] == 32767 + by


def test_semaphores_are_read_and_those_that_are_not_there_refused() -> None:
    code = FILLED.index(("imm0", 0))
    for number, fence, bad in (
        (0, True, False),
        (63, True, False),
        (64, True, True),
        (-1, True, True),
        (0, False, True),
    ):
        (one,) = shown(
            [sequence(operation(SeqOp.SEMAPHORE, 5, immediate=number), fence=fence), with_fills(1, [(code, 5)])]
        )
        assert (one.cause == Cause.BAD_SEQUENCE) == bad and (
            bad or INSTRUCTION.unpack(one.word)["imm0"] == 100 + number
        )


def test_an_empty_loop_without_end_is_refused() -> None:
    jump = sequence(operation(SeqOp.BRANCH_EQUAL, 0, ZERO, ZERO, 1))
    assert [(one.index, one.cause) for one in shown([1, jump], limit=50)] == [(0, Cause.NONE), (1, Cause.ENDLESS_LOOP)]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_end(seed: int) -> None:
    program = random_program(np.random.default_rng(seed), 30, 64)
    machine = Sequencer(program, lambda n: n, 64)
    found = list(machine)
    assert len(found) < 20_000 and all(one.word & 0xFF != SEQUENCE or one.cause for one in found)
    assert not any(one.cause for one in found[:-1])


def test_a_scrambled_program_shows_what_it_should() -> None:
    rng = np.random.default_rng(5)
    for count in (0, 1, 5, 40, 200):
        words = [plain(rng) for _ in range(count)]
        program = scrambled(rng, words)
        assert [one.word for one in shown(program)] == words
        assert count < 40 or len(program) > 1.2 * count


def test_words_of_hbm_are_loaded_and_those_that_cannot_be_had_refused() -> None:
    code = FILLED.index(("imm0", 0))
    words = {5: 1234, 6: (1 << 32) - 7, 7: Cause.BUS_ERROR}
    for a, b, fence, want in (
        (5, 0, True, 1234), (9, -3, True, (1 << 32) - 7), (7, 0, True, Cause.BUS_ERROR),
        (-1, 0, True, Cause.OUT_OF_RANGE), (5, 0, False, Cause.BAD_SEQUENCE),
    ):  # fmt: skip
        sets = operation(SeqOp.ADD, 1, ZERO, None, a), operation(SeqOp.LOAD, 5, 1, None, b)
        program = [sequence(*sets, fence=fence), with_fills(1, [(code, 5)])]
        (one,) = Sequencer(program, lambda n: 0, 64, load=lambda n: words.get(n, Cause.OUT_OF_RANGE))
        assert one.cause == (want if isinstance(want, Cause) else Cause.NONE)
        assert one.cause or INSTRUCTION.unpack(one.word)["imm0"] == want
