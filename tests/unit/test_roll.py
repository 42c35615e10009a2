"""Rolled queues show exactly the words that they were, for random nests of loops; how few words regular loops take."""

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest

from firmware.loops.roll import roll
from firmware.loops.words import operation, sequence, with_fills
from rtl.contract.isa import INSTRUCTION
from rtl.contract.sequence import SEQUENCE, SeqOp
from verif.golden.sequencer import Sequencer

SEMAPHORES = 16
BOUNDS = {f.name: f.bounds for f in INSTRUCTION}
FIELDS = (
    "src0_offset",
    "dst_offset",
    "src1_partition_start",
    "src0_step1",
    "dst_count3",
    "wait0_semaphore",
    "wait0_value",
    "wait1_value",
    "imm0",
    "imm2",
)


def shown(words: list[int], most: int | None = None) -> list[int]:
    """What a queue sees, so many words at most; one that is refused is -1."""
    sequencer = Sequencer(words, lambda index: 0, SEMAPHORES)
    return [-1 if one.cause else one.word for one in islice(sequencer, most)]


def word(**fields: int) -> int:
    """A matmul, whose fields stay in their bounds."""
    values = {}
    for name, value in fields.items():
        low, high = BOUNDS[name]
        values[name] = low + (value - low) % (high - low + 1)
    return INSTRUCTION.pack(opcode=17, **values)


class Nest:
    """A random nest of loops, run in Python: its words and the bounds of its turns."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.words: list[int] = []
        self.spans: list[tuple[int, ...]] = []
        for _ in range(int(self.rng.integers(1, 4))):
            self.block(0)()
            if self.rng.random() < 0.5:
                self.words.append(word(src0_offset=int(self.rng.integers(1 << 20))))

    def block(self, depth: int) -> Callable[..., None]:
        """A loop whose body is drawn once, with turns that may differ."""
        rng = self.rng
        count = int(rng.choice([0, 1, 2, 3, 5, 9, 20])) if depth < 2 else int(rng.integers(1, 5))
        parts: list[Callable[..., None]] = []
        for _ in range(int(rng.integers(1, 5))):
            inside = depth < 2 and rng.random() < 0.3
            parts.append(self.block(depth + 1) if inside else self.instruction(depth + 1, count))

        def run(*around: int) -> None:
            bounds = [len(self.words)]
            for turn in range(count):
                for part in parts:
                    part(*around, turn)
                bounds.append(len(self.words))
            self.spans.append(tuple(bounds))

        return run

    def instruction(self, depth: int, count: int) -> Callable[..., None]:
        rng = self.rng
        names = rng.choice(FIELDS, int(rng.integers(0, 6 if rng.random() < 0.1 else 5)), replace=False).tolist()
        base = {name: int(rng.integers(0, 1 << 31)) for name in names}
        steps = {name: [int(rng.choice([0, 1, -1, 64, -256, 1 << 30])) for _ in range(depth)] for name in names}
        rotates = int(rng.choice([1, 2, 4, 1 << 30], p=[0.1, 0.1, 0.1, 0.7]))
        kind = int(rng.choice([0, 0, 0, 1, 2, 3, 4]))

        def run(*turns: int) -> None:
            if kind == 1 and turns[-1] == 0:
                return  # the first turn has less
            if kind == 2 and turns[-1] == count - 1:
                return
            values = {n: base[n] + sum(s * (t % rotates) for s, t in zip(steps[n], turns)) for n in names}
            accumulate = int(kind == 3 and turns[-1] > 0)
            wait = int(kind == 4 and sum(turns) > 1)
            self.words.append(word(accumulate=accumulate, wait1=wait, **values))

        return run


@pytest.mark.parametrize("seed", range(60))
def test_a_rolled_queue_shows_its_words(seed: int) -> None:
    nest = Nest(seed)
    rolled = roll(nest.words, nest.spans)
    assert len(rolled) <= len(nest.words)
    assert shown(rolled) == nest.words


def test_random_nests_are_rolled() -> None:
    """So that the test above does not compare words with themselves."""
    nests = [Nest(seed) for seed in range(20)]
    sizes = [(len(n.words), len(roll(n.words, n.spans))) for n in nests]
    assert sum(rolled < plain / 3 for plain, rolled in sizes) > 5


def regular(turns: int, body: int) -> tuple[list[int], tuple[int, ...]]:
    words = [
        word(src0_offset=turn * 64 + n, wait0_value=turn, dst_offset=n) for turn in range(turns) for n in range(body)
    ]
    return words, tuple(range(0, len(words) + 1, body))


@pytest.mark.parametrize("turns", [3, 40, 400])
@pytest.mark.parametrize("body", [1, 5, 31])
def test_a_regular_loop_takes_two_words_more_than_its_body(turns: int, body: int) -> None:
    words, span = regular(turns, body)
    rolled = roll(words, [span])
    assert len(rolled) <= min(body + 2, len(words))
    assert shown(rolled) == words


def test_turns_that_differ_stay_as_they_are() -> None:
    """The first has no wait, the last has a word more."""
    words, span = regular(50, 4)
    words[0] = word(dst_offset=3)
    words.append(word(update_value=9))
    rolled = roll(words, [(*span[:-1], len(words))])
    assert len(rolled) <= 4 + 2 + 4 + 1
    assert shown(rolled) == words


def test_places_that_take_turns_are_a_loop_of_loops() -> None:
    words = [word(dst_offset=turn % 8 * 2048, src0_offset=turn * 64, wait0_value=turn) for turn in range(256)]
    rolled = roll(words, [tuple(range(257))])
    assert len(rolled) <= 4
    assert shown(rolled) == words


def test_a_word_with_nothing_that_varies_names_no_register() -> None:
    words = [word(dst_offset=7), word(src0_offset=1), word(dst_offset=7), word(src0_offset=2)]
    words += [word(dst_offset=7), word(src0_offset=3)]
    rolled = roll(words, [(0, 2, 4, 6)])
    assert word(dst_offset=7) in rolled
    assert shown(rolled) == words


def test_five_fields_are_more_than_a_word_may_name() -> None:
    words = [word(**{name: 5 + turn for name in FIELDS[:5]}) for turn in range(9)]
    assert roll(words, [tuple(range(10))]) == words


def test_a_nest_that_needs_more_registers_is_rolled_less() -> None:
    """70 words with strides of their own in one body; loops in it are rolled."""
    words, spans, outer = [], [], [0]
    for turn in range(6):
        words += [word(src0_offset=turn * (n + 1)) for n in range(70)]
        spans.append(tuple(range(len(words), len(words) + 41)))
        words += [word(dst_offset=n * 4 + turn) for n in range(40)]
        outer.append(len(words))
    rolled = roll(words, [*spans, tuple(outer)])
    assert len(rolled) < 6 * (70 + 4)
    assert shown(rolled) == words


def test_waits_wrap() -> None:
    words = [word(wait0_value=(1 << 31) - 3 + turn, imm0=((1 << 32) - 2 + turn) % (1 << 32)) for turn in range(9)]
    rolled = roll(words, [tuple(range(10))])
    assert len(rolled) < 5
    assert shown(rolled) == words


def test_loops_one_behind_the_other_find_their_registers_as_they_need_them() -> None:
    words, spans = [], []
    for times in range(40):
        spans.append(tuple(range(len(words), len(words) + 11 + times % 3)))
        words += [word(src0_offset=n * times, wait0_value=-n, imm2=times) for n in range(10 + times % 3)]
    rolled = roll(words, spans)
    assert len(rolled) <= 40 * 3
    assert shown(rolled) == words


def test_a_changed_bit_of_any_rolled_word_is_noticed() -> None:
    words, span = regular(30, 3)
    rolled = roll(words, [span])
    for at, one in enumerate(rolled):
        operations = [one >> 256 + 64 * n & (1 << 64) - 1 for n in range(8)]
        immediates = [256 + 64 * n + 32 for n, found in enumerate(operations) if found]
        for bit in immediates if one & 0xFF == SEQUENCE else (0, 64, 192, 200, 256):
            changed = [*rolled]
            changed[at] ^= 1 << bit
            assert shown(changed, len(words) + 1) != words, f"bit {bit} of word {at}"


def test_words_of_a_sequencer_are_left_alone() -> None:
    looping = [sequence(operation(SeqOp.ADD, 1, 63, None, 3)), with_fills(word(), [(1, 1)]), *[word()] * 9]
    assert roll(looping, [tuple(range(12))]) == looping


def test_loops_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="the one around it ends at 4"):
        roll([word()] * 8, [(0, 2, 4), (2, 4, 8)])
