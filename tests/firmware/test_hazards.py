"""Dependencies by place: what the grids find is what looking at every record finds, and in little time."""

import random
import time

from firmware.hazards import Access, Hazards
from firmware.workloads import WORKLOADS
from rtl.contract.config import named

Range = tuple[int, int]


class EveryRecord:
    """The same rules with a list of all accesses that were ever made."""

    def __init__(self, ordered: frozenset[int]):
        self.ordered = ordered
        self.seen: list[tuple[int, int, Access]] = []

    def needs(self, producer: int, accesses: tuple[Access, ...]) -> dict[int, int]:
        found: dict[int, int] = {}
        for mine in accesses:
            for other, count, old in self.seen:
                if not (mine.writes or old.writes) or mine.memory != old.memory:
                    continue
                if any(a[0] >= b[1] or b[0] >= a[1] for a, b in zip(mine.box, old.box, strict=True)):
                    continue
                if not (other == producer and producer in self.ordered and mine.writes):
                    found[other] = max(found.get(other, 0), count)
        return found


def some_range(rng: random.Random) -> Range:
    size = rng.choice((1, 1, 2, 3, 8, 8, 40))
    low = rng.randrange(0, 48 - size)
    return low, low + size


def test_all_that_matters_is_found() -> None:
    """What a covered record needed is implied by who covered it, so closures are compared, not counts."""
    for seed in range(20):
        rng = random.Random(seed)
        ordered = frozenset((0, 1))
        hazards, reference = Hazards(ordered=ordered), EveryRecord(ordered)
        for _ in range(250):
            producer = rng.randrange(4)
            accesses = tuple(
                Access(rng.choice("ab"), (some_range(rng), some_range(rng)), rng.random() < 0.4)
                for _ in range(rng.randrange(1, 3))
            )
            needs = hazards.needs(producer, accesses)
            wanted = reference.needs(producer, accesses)
            # Nothing that does not meet it is waited for, and all that meets it is known afterwards.
            assert all(n <= wanted.get(p, 0) for p, n in needs.items())
            known: dict[int, int] = {}
            hazards.learn(known, needs)
            before = hazards.implied.get(producer)
            own = dict(before[-1]) if before and producer in ordered else {}
            assert all(max(known.get(p, 0), own.get(p, 0)) >= n for p, n in wanted.items())
            count = hazards.add(producer, accesses, known)
            reference.seen += [(producer, count, access) for access in accesses]


def test_time_grows_like_the_program() -> None:
    """60,000 accesses to a tensor; a look at every record for each would take an hour."""
    hazards = Hazards(ordered=frozenset())
    begin = time.process_time()
    for i in range(60_000):
        row = (Access("t", ((i, i + 1), (0, 64)), i % 2 == 0),)
        assert hazards.needs(i % 3, row) == {}
        hazards.add(i % 3, row, {})
    assert time.process_time() - begin < 20


def test_a_long_product_is_built_quickly() -> None:
    tiny = named("tiny")
    begin = time.process_time()
    program = WORKLOADS["gemm"].build(tiny, {"m": 1 << 18, "k": 1, "n": 1})
    assert time.process_time() - begin < 15
    assert sum(len(ring) for ring in program.rings) > 8000
