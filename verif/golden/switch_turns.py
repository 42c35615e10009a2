"""Whose turn it is in a switch: classes of an output, pairs that waited too long (docs/switch-scheduler.md)."""

from collections.abc import Iterable, Mapping, Sequence
from math import gcd

from rtl.contract.switch_config import SwitchConfig

__all__ = ["Arrears", "ClassTurns", "Patience"]


class ClassTurns:
    """Which class an output serves: the strict one within its cap, else deficit round robin."""

    WINDOW = 64  # flits in which the strict class has its cap
    FLOOR = -32  # deepest debt of a class

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg.link
        self.deficit = list(self.cfg.weights[: self.cfg.classes])
        self.last = self.cfg.classes - 1
        self.kinds = [0] * self.cfg.classes  # served last
        self.window = 0
        self.spent = 0
        self.spent_most = 1  # of the fewest bits that hold a window and two caps; more than that is forgiven
        while self.spent_most < self.WINDOW + 2 * self.cfg.strict_cap - 1:
            self.spent_most = 2 * self.spent_most + 1
        self.paying = False  # others waited when this strict unit began
        self.strict_first = False
        self.waits = False

    def turn(self, classes: Sequence[int]) -> int:
        """Whose turn it is of those."""
        n = self.cfg.classes
        return min(classes, key=lambda c: (c - self.last - 1) % n)

    def choose(self, free: Sequence[int], held: Sequence[int], serving: int | None) -> int | None:
        """The class of this slot. free, held: classes that inputs hold which are free, which are there at all;
        serving: the class of a unit under way."""
        if not (free or held) and serving is None:
            self.waits = self.strict_first = False
            return None
        strict = self.cfg.strict_class
        others = [c for c in free if c != strict]
        self.waits = any(c != strict for c in held)
        self.strict_first = strict in held and (self.spent < self.cfg.strict_cap or not self.waits)
        active = {c for c in (*held, serving) if c not in (None, strict)}
        if active and all(self.deficit[c] <= 0 for c in active):
            self.deficit = [min(d + w, w) for d, w in zip(self.deficit, self.cfg.weights)]
        if self.strict_first:
            return strict
        may = [c for c in others if self.deficit[c] > 0] or others
        return self.turn(may) if may else None

    def begin(self, chosen: int | None, queues: int, urgent: bool) -> int:
        """A unit begins, of an input whose queues are given as bits. Returns its queue."""
        strict = self.cfg.strict_class
        held = [c for c in range(self.cfg.classes) if queues >> 2 * c & 3]
        if chosen in held:
            class_ = chosen
        else:
            others = [c for c in held if c != strict]
            class_ = self.turn([c for c in others if self.deficit[c] > 0] or others or held)
        pair = queues >> 2 * class_ & 3
        kind = 1 - self.kinds[class_] if pair == 3 else pair >> 1
        self.kinds[class_] = kind
        self.paying = class_ == strict and self.waits and (self.strict_first or urgent)
        if class_ != strict:
            self.last = class_
        return 2 * class_ + kind

    def charge(self, class_: int) -> None:
        """A flit of that class goes."""
        if class_ != self.cfg.strict_class:
            self.deficit[class_] = max(self.deficit[class_] - 1, self.FLOOR)
        if class_ == self.cfg.strict_class and self.paying:
            self.spent = min(self.spent + 1, self.spent_most)
        self.window += 1
        if self.window == self.WINDOW:
            self.window = 0
            self.spent = max(self.spent - self.cfg.strict_cap, 0)


class Patience:
    """Walks over the diagonals of the crossbar: what waited through a whole visit is urgent until it is served."""

    VISIT = 16
    STRICT = 64

    def __init__(self, count: int):
        self.count = count
        self.strides = [k for k in range(1, count) if gcd(k, count) == 1]
        self.walk = 0  # walks done
        self.visits = 0
        self.diagonal = 0
        self.slots = 0
        self.unserved = set(range(count))  # outputs

    def input_of(self, output: int) -> int:
        return (output + self.diagonal) % self.count

    @property
    def urgent(self) -> set[int]:
        """Outputs whose pair on the diagonal is urgent."""
        return set(self.unserved) if self.slots >= self.VISIT else set()

    @property
    def before_strict(self) -> bool:
        """They have waited so long that they go even before strict units."""
        return self.slots >= self.VISIT + self.STRICT

    def step(self, asks: Sequence[int], began: Mapping[int, int]) -> None:
        """A slot: bits of outputs that an input asks for at all, by input, and the units that began."""
        self.unserved = {
            o for o in self.unserved if asks[self.input_of(o)] >> o & 1 and began.get(self.input_of(o)) != o
        }
        self.slots = min(self.slots + 1, self.VISIT + self.STRICT)
        if self.slots >= self.VISIT and not self.unserved:
            self.diagonal = (self.diagonal + self.strides[self.walk % len(self.strides)]) % self.count
            self.visits = (self.visits + 1) % self.count
            self.walk += self.visits == 0
            self.slots = 0
            self.unserved = set(range(self.count))


class Arrears:
    """Flits of one output that its inputs are behind the one that it served most, whatever their classes."""

    LONG = 8  # flits that wait, from which an input is owed anything
    BEHIND = 16
    MOST = 31

    def __init__(self, cfg: SwitchConfig):
        self.long = min(self.LONG, cfg.length_cap_flits)
        self.owed = [0] * cfg.inputs

    def first(self, asking: set[int], free: set[int]) -> set[int]:
        """Of inputs that ask, those that are behind, if one of them is free; else all."""
        behind = {i for i in asking if self.owed[i] >= self.BEHIND}
        return behind if behind & free else asking

    def step(self, lengths: Sequence[int], served: int | None, sending: Iterable[int]) -> None:
        """A slot. lengths: flits that wait, by input; served, sending: who sends here, who sends anywhere."""
        if served is None and not any(self.owed):
            return
        if served is not None and self.owed[served]:
            self.owed[served] -= 1
        elif served is not None:
            for i in set(range(len(self.owed))) - set(sending):
                self.owed[i] = min(self.owed[i] + 1, self.MOST)
        self.owed = [n if long >= self.long else 0 for n, long in zip(self.owed, lengths, strict=True)]
