"""The scheduler of a switch, a slot at a time (docs/switch-scheduler.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from rtl.contract.switch_config import SwitchConfig
from verif.golden.switch_matching import Islip, Matching, Orders, merged, wavefront

__all__ = ["ClassTurns", "Grant", "Patience", "Schedule"]


@dataclass(frozen=True, slots=True)
class Grant:
    """What an input sends in a slot: to `output`, from `queue`; first: a new unit."""

    output: int
    queue: int
    first: bool


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
        self.spent += class_ == self.cfg.strict_class and self.paying
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

    def step(self, asks: Sequence[int], began: Matching) -> None:
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


class Schedule:
    """The scheduler; `grants` is what inputs send in the slot under way."""

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        self.count = cfg.inputs
        self.orders = Orders(self.count)
        self.turns = [ClassTurns(cfg) for _ in range(self.count)]
        self.patience = Patience(self.count)
        self.islip = Islip(self.count, cfg.islip_iterations)
        self.kept = [0] * self.count
        self.grants: dict[int, Grant] = {}
        self.seen = set[str]()  # what happened in the last slot, for coverage

    def step(
        self,
        lists: Sequence[int],
        lengths: Sequence[Sequence[int]],
        more: int,
        ready: int,
        blocked_inputs: int = 0,
        blocked_outputs: int = 0,
    ) -> dict[int, Grant]:
        """What is sent in the next slot, from what is held in this one. lists, ready: bit output * queues + queue."""
        n, queues, strict = self.count, self.cfg.link.queues, self.cfg.link.strict_class
        everything = set(range(n))
        each = (1 << queues) - 1
        eligible = [x & ready for x in lists]
        held = {i: g.output for i, g in self.grants.items() if more >> i & 1}
        free_rows = {i for i in everything if not more >> i & 1}
        free_columns = everything - set(held.values())
        by_column = {o: i for i, o in held.items()}

        # classes
        union_free = union = 0
        for i in range(n):
            union |= eligible[i]
            if i in free_rows:
                union_free |= eligible[i]
        chosen: list[int | None] = []
        wanted = 0  # queues of the classes chosen
        for o, turns in enumerate(self.turns):
            inside = [
                [c for c in range(self.cfg.link.classes) if u >> (o * queues + 2 * c) & 3] for u in (union_free, union)
            ]
            serving = self.grants[by_column[o]].queue // 2 if o in by_column else None
            chosen.append(turns.choose(inside[0], inside[1], serving))
            if chosen[o] is not None:
                wanted |= 3 << (o * queues + 2 * chosen[o])
        asks = [sum(1 << o for o in range(n) if e & wanted & each << o * queues) for e in eligible]
        any_asks = [sum(1 << o for o in range(n) if e & each << o * queues) for e in eligible]

        # strict units, then urgent pairs: they go, or their rows and columns wait for them
        place = self.orders.step()
        began: Matching = {}
        rows, columns = set(free_rows), set(free_columns)
        urgent = {self.patience.input_of(o): o for o in self.patience.urgent}
        urgent = {i: o for i, o in urgent.items() if any_asks[i] >> o & 1}
        stricts: Matching = {}
        strict_columns = {o for o in everything if strict >= 0 and chosen[o] == strict}
        if self.patience.before_strict:
            stricts = wavefront(asks, everything - set(urgent), strict_columns - set(urgent.values()), place)
        elif strict_columns:
            stricts = wavefront(asks, everything, strict_columns, place)
        for wishes in (urgent, stricts) if self.patience.before_strict else (stricts, urgent):
            began |= {i: o for i, o in wishes.items() if i in rows and o in columns}
            rows -= set(wishes)
            columns -= set(wishes.values())

        # the matching, and a second pass for whatever is still idle
        kept = set[int]()
        if self.cfg.matching == "islip":
            match = self.islip.match(asks, rows, columns)
        else:
            match = wavefront(asks, rows, columns, place)
        if self.cfg.matching == "merged":
            old = {
                i: g.output
                for i, g in self.grants.items()
                if i in rows and g.output in columns and asks[i] >> g.output & 1 and self.kept[i] < self.cfg.keep_slots
            }
            match, kept = merged(old, match, lambda i, o: min(lengths[i][o], self.cfg.length_cap_flits))
        rows -= set(match)
        columns -= set(match.values())
        self.seen = {
            name
            for name, happens in (
                ("hold", held),
                ("urgent begins", set(urgent.items()) & set(began.items())),
                ("urgent waits", set(urgent) - set(began)),
                ("urgent before strict", urgent and self.patience.before_strict),
                ("strict begins", set(stricts) & set(began)),
                ("strict waits", set(stricts) - set(began)),
                ("kept", kept),
                ("new match stands", set(match) - kept),
                ("kept long enough", any(self.kept[i] == self.cfg.keep_slots for i in rows)),
            )
            if happens
        }
        for name, requests in (("filled up", asks), ("second pass", any_asks)):
            fill = wavefront(requests, rows, columns, place)
            self.seen |= {name} if fill else set()
            rows -= set(fill)
            columns -= set(fill.values())
            match |= fill
        began |= match

        # bypass transfers that still run are in the way
        began = {i: o for i, o in began.items() if not (blocked_inputs >> i | blocked_outputs >> o) & 1}
        grants = {i: Grant(o, self.grants[i].queue, False) for i, o in held.items()}
        for i in range(n):
            if i in began:
                o = began[i]
                grants[i] = Grant(
                    o, self.turns[o].begin(chosen[o], eligible[i] >> o * queues & each, i in urgent), True
                )
                self.kept[i] = self.kept[i] + 1 if i in kept else 0
        for grant in grants.values():
            self.turns[grant.output].charge(grant.queue // 2)
        self.patience.step(any_asks, began)
        self.grants = grants
        return grants
