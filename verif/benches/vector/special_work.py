"""Random instructions of the special units: their beats, and what the golden model makes of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rtl.contract.formats import FORMATS
from rtl.contract.isa import SHUFFLE_KEEP, Opcode, block
from rtl.vector.special import SPECIAL
from verif.agents.bench import manifest
from verif.agents.values import random_codes, special_codes
from verif.checks.coverage import Coverage
from verif.golden import special as golden
from verif.golden.reciprocal import reciprocal

__all__ = [
    "MAKERS",
    "P",
    "Q",
    "RESULTS",
    "U32",
    "Work",
    "coverage",
    "packed",
    "shuffled",
    "statistics",
    "transposed",
    "unpacked",
]

U32 = NDArray[np.uint32]
CORNERS = special_codes(FORMATS["fp32"]).astype(np.uint32)
RESULTS = int(manifest().options["results"])
P = manifest().config.partitions
Q = int(manifest().options.get("size", 0)) or block(P)
coverage = Coverage(
    "special_units",
    [opcode.name for opcode in SPECIAL]
    + [f"{opcode.name} without stalls" for opcode in SPECIAL]
    + ["at once", "no room", "equal values", "NaN looked for", "zero of the other sign", "absent", "NaN largest"]
    + (["no place"] if RESULTS < 8 else [])
    + ["replaced all", "kept partition", "all kept but one", "one element", "halves of different counts", "largest run"]
    + ["nothing merged", "spread below zero", "many runs", "infinite"],
)


@dataclass
class Work:
    """An instruction: what its beats are, and what it has to give."""

    opcode: Opcode
    x: U32
    wanted: U32
    values: U32 | None = None
    a: U32 = field(default_factory=lambda: np.zeros(P, np.uint32))
    mask: list[int] = field(default_factory=lambda: [0] * Q)

    def beats(self) -> Iterator[tuple[int, int, int]]:
        """(data, values, last)"""
        for i in range(0 if self.values is None else self.values.shape[1]):
            yield packed(self.values[:, i]), 1, 0  # type: ignore[index]
        for i in range(self.x.shape[1]):
            yield packed(self.x[:, i]), 0, int(i == self.x.shape[1] - 1)


def packed(column: U32) -> int:
    """One beat."""
    return int.from_bytes(np.ascontiguousarray(column, "<u4").tobytes(), "little")


def unpacked(beat: int) -> U32:
    """The lanes of a beat."""
    return np.frombuffer(beat.to_bytes(4 * P, "little"), "<u4")


def some(rng: np.random.Generator, count: int) -> U32:
    """[P, count] numbers of any kind."""
    flavour = str(rng.choice(["bits", "special", "narrow", "normal", "subnormal"]))
    if rng.random() < 0.4:
        return rng.normal(1, 3, size=(P, count)).astype(np.float32).view(np.uint32)
    return random_codes(rng, (P, count), "fp32", flavour).astype(np.uint32)


def few(rng: np.random.Generator, count: int) -> U32:
    """[P, count] numbers of which many are equal."""
    return rng.choice(rng.choice(CORNERS, int(rng.integers(2, 12))), (P, count)).astype(np.uint32)


def near(rng: np.random.Generator, count: int) -> U32:
    """[P, count] numbers that differ from another one of their lane in one bit, or in some neighbouring ones."""
    base = rng.integers(0, 1 << 32, (P, 1), dtype=np.uint32)
    bits = rng.integers(0, 1 << int(rng.integers(1, 9)), (P, count), dtype=np.uint32)
    return base ^ bits << rng.integers(0, 32, (P, 1), dtype=np.uint32)


def largest(rng: np.random.Generator, close: bool = False) -> Work:
    """`close`: any comparison may hang on one bit."""
    x = few(rng, int(rng.integers(8, 40))) if rng.random() < 0.4 else some(rng, int(rng.integers(8, 60)))
    x = np.concatenate([near(rng, 10), near(rng, 10)], axis=1) if close else x
    coverage.when(((x & np.uint32(0x7FFFFFFF)) > 0x7F800000).any(), "NaN largest")
    return Work(Opcode.MAX8, x, golden.max8(x))


def looked_for(rng: np.random.Generator) -> tuple[U32, U32]:
    """Elements, and eight values of which most are among them."""
    x = few(rng, int(rng.integers(8, 40))) if rng.random() < 0.5 else some(rng, int(rng.integers(8, 60)))
    values = np.take_along_axis(x, rng.integers(0, x.shape[1], (P, 8)), axis=1)
    values = np.where(rng.random((P, 8)) < 0.2, rng.choice(CORNERS, (P, 8)), values)
    values[values == 0] = 1 << 31 if rng.random() < 0.5 else 0
    x[0, 3], values[0, 5] = rng.permutation(np.array([0, 1 << 31], np.uint32))
    coverage.hit("zero of the other sign")
    coverage.when(((values & np.uint32(0x7FFFFFFF)) > 0x7F800000).any(), "NaN looked for")
    coverage.when(any(np.unique(row).size < 8 for row in values), "equal values")
    return x, values.astype(np.uint32)


def found(rng: np.random.Generator) -> Work:
    x, values = looked_for(rng)
    wanted = golden.find_index8(x, values)
    coverage.when((wanted == golden.ABSENT).any(), "absent")
    return Work(Opcode.FIND_INDEX8, x, wanted, values)


def replaced(rng: np.random.Generator) -> Work:
    x, values = looked_for(rng)
    a = rng.integers(0, 1 << 32, P, dtype=np.uint32)
    coverage.when(((golden.find_index8(x, values) != golden.ABSENT).all(axis=1)).any(), "replaced all")
    return Work(Opcode.MATCH_REPLACE8, x, golden.match_replace8(x, values, a), values, a)


def transposed(rng: np.random.Generator, runs: int = 0) -> Work:
    runs = runs or int(rng.choice([1, 2, 3, 5, 9]))
    x = rng.integers(0, 1 << 32, (P, Q * runs), dtype=np.uint32)
    coverage.when(runs > 4, "many runs")
    return Work(Opcode.TRANSPOSE, x, golden.transpose(x, Q).astype(np.uint32))


def shuffled(rng: np.random.Generator, only_one: bool = False, turn: int = 0) -> Work:
    """`turn`: every partition takes from the one so many further; else of any."""
    x = rng.integers(0, 1 << 32, (P, int(rng.integers(1, 20))), dtype=np.uint32)
    mask = rng.integers(0, Q, Q)
    mask[rng.random(Q) < rng.choice([0, 0.3])] = SHUFFLE_KEEP
    mask = (np.arange(Q) + turn) % Q if turn else mask
    if only_one:
        mask[:] = SHUFFLE_KEEP
        mask[int(rng.integers(Q))] = int(rng.integers(Q))
    coverage.when((mask == SHUFFLE_KEEP).any(), "kept partition")
    coverage.when((mask == SHUFFLE_KEEP).sum() == Q - 1, "all kept but one")
    wanted = golden.shuffle(x, np.zeros_like(x), mask.tolist(), Q)
    return Work(Opcode.SHUFFLE, x, wanted.astype(np.uint32), mask=mask.tolist())


def statistics(rng: np.random.Generator, count: int = 0, kind: float = -1) -> Work:
    count = count or int(rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 40]))
    x = some(rng, count)
    kind = rng.random() if kind < 0 else kind
    if kind < 0.2:
        x = rng.normal(size=(P, count)).astype(np.float32).view(np.uint32)
    elif kind < 0.4:
        x = (1000 + 1e-4 * rng.normal(size=(P, count))).astype(np.float32).view(np.uint32)
    elif kind < 0.6:  # all but the first are equal: what the odd ones' spread should be is what rounding makes of 0
        x[:, 1:] = x[:, 1:2]
    wanted = golden.bn_stats(x)
    coverage.when(count == 1, "one element")
    coverage.when(count > 1 and count % 2, "halves of different counts")
    coverage.when(count == 512, "largest run")
    coverage.when((wanted[:, 5] == 0).any() and count > 8, "spread below zero")
    return Work(Opcode.BN_STATS, x, wanted)


def merged(rng: np.random.Generator) -> Work:
    triples = int(rng.integers(1, 7))
    x = some(rng, 3 * triples)
    if rng.random() < 0.7:
        x = rng.normal(2, 3, size=(P, 3 * triples)).astype(np.float32)
        x[:, 0::3] = rng.integers(0, 4, (P, triples))
        x[:, 2::3] = np.abs(x[:, 2::3])
        x = x.view(np.uint32)
    x[0, 0::3] = rng.choice(np.array([0, 1 << 31], np.uint32), triples)
    wanted = golden.bn_aggr(x)
    coverage.when((x[:, 0::3] & np.uint32(0x7FFFFFFF) == 0).all(axis=1).any(), "nothing merged")
    return Work(Opcode.BN_AGGR, x, wanted)


def inverted(rng: np.random.Generator) -> Work:
    x = some(rng, int(rng.integers(1, 12)))
    x[:, 0] = rng.choice(CORNERS, P)
    x[0, 0] = rng.choice(np.array([0, 1 << 31], np.uint32))
    wanted = reciprocal(x)
    coverage.when((wanted & np.uint32(0x7FFFFFFF) == 0x7F800000).any(), "infinite")
    return Work(Opcode.RECIPROCAL, x, wanted)


MAKERS: dict[Opcode, Callable[[np.random.Generator], Work]] = {
    Opcode.MAX8: largest,
    Opcode.FIND_INDEX8: found,
    Opcode.MATCH_REPLACE8: replaced,
    Opcode.TRANSPOSE: transposed,
    Opcode.SHUFFLE: shuffled,
    Opcode.BN_STATS: statistics,
    Opcode.BN_AGGR: merged,
    Opcode.RECIPROCAL: inverted,
}
