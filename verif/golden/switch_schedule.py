"""The scheduler of a switch, a slot at a time (docs/switch-scheduler.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from rtl.contract.switch_config import SwitchConfig
from verif.golden.switch_matching import Islip, Matching, Orders, merged, wavefront
from verif.golden.switch_turns import Arrears, ClassTurns, Patience

__all__ = ["Grant", "Schedule"]


@dataclass(frozen=True, slots=True)
class Grant:
    """What an input sends in a slot: to `output`, from `queue`; first: a new unit."""

    output: int
    queue: int
    first: bool


@cache
def _classes(held: int) -> tuple[int, ...]:
    """Classes of the queues that are given as bits, two of each class."""
    return tuple(c for c in range((held.bit_length() + 1) // 2) if held >> 2 * c & 3)


def _outputs(lists: int, queues: int) -> int:
    """Bits of the outputs that have a bit in `lists`. Most lists are empty, so this goes from one that is not to the
    next: of a switch with few senders a slot takes half of the time that looking at all takes."""
    found = 0
    while lists:
        o = ((lists & -lists).bit_length() - 1) // queues
        found |= 1 << o
        lists = lists >> (o + 1) * queues << (o + 1) * queues
    return found


class Schedule:
    """The scheduler; `grants` is what inputs send in the slot under way."""

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        self.count = cfg.inputs
        self.orders = Orders(self.count)
        self.turns = [ClassTurns(cfg) for _ in range(self.count)]
        self.arrears = [Arrears(cfg) for _ in range(self.count)]
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
            inside = [_classes(u >> o * queues & each) for u in (union_free, union)]
            serving = self.grants[by_column[o]].queue // 2 if o in by_column else None
            class_ = turns.choose(inside[0], inside[1], serving)
            chosen.append(class_)
            if class_ is not None:
                wanted |= 3 << (o * queues + 2 * class_)
        asks = [_outputs(e & wanted, queues) for e in eligible]
        asked = _outputs(union & wanted, queues)
        barred = 0
        for o, arrears in enumerate(self.arrears):
            if not asked >> o & 1:
                continue
            asking = {i for i in range(n) if asks[i] >> o & 1}
            for i in asking - arrears.first(asking, free_rows):
                asks[i] ^= 1 << o
                barred += 1
        any_asks = [_outputs(e, queues) for e in eligible]

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
                ("barred", barred),
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
        by_output = {g.output: i for i, g in grants.items()}
        for o, (arrears, waiting) in enumerate(zip(self.arrears, zip(*lengths, strict=True), strict=True)):
            arrears.step(waiting, by_output.get(o), grants)
        self.patience.step(any_asks, began)
        self.grants = grants
        return grants
