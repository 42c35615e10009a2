"""Golden rules of lanes (docs/lanes.md): which lane's marker is believed, which lanes are dead, which are weak."""

from collections.abc import Set
from dataclasses import dataclass, field

from rtl.contract.lanes import MISSES_DEAD, MISSES_OF, WEAK_RATIO
from verif.golden.lanes import open_marker

__all__ = ["LaneHealth", "LaneTrust"]


@dataclass
class LaneTrust:
    """What one end makes of markers. `dead` lanes stay so until the partner aligns anew (`found`).

    told: fields of the marker that is believed, None if there was none; seen: lanes that agree with it; markers and
    missed count like the counters of the unit.
    """

    physical: int
    dead: set[int] = field(default_factory=set)
    told: dict[str, int] | None = None
    seen: set[int] = field(default_factory=set)
    markers: int = 0
    missed: int = 0
    _misses: dict[int, list[bool]] = field(default_factory=dict)
    _before: dict[int, dict[str, int]] = field(default_factory=dict)

    def flit(self) -> None:
        """A word of a flit: no marker is back to back with one before it."""
        self._before = {}

    def found(self) -> None:
        """The word was the second of markers back to back."""
        self.dead, self._misses = set(), {}

    def marker(self, words: list[int], *, between_flits: bool) -> None:
        """A marker time, one word a lane."""
        fields = {p: f for p, w in enumerate(words) if (f := open_marker(w, p)) is not None}
        again = {p for p in fields if p in self._before and self._before[p]["more"]}
        again = {p for p in again if fields[p]["toggle"] != self._before[p]["toggle"]}
        trusted = (set(fields) - self.dead if between_flits else again) or set(fields)
        self.told = fields[min(trusted)] if trusted else None
        alike = ("version", "width", "toggle")
        told = self.told
        self.seen = {p for p, f in fields.items() if told is not None and all(f[k] == told[k] for k in alike)}
        for p in range(self.physical):
            last = [*self._misses.get(p, []), p not in self.seen][-MISSES_OF:]
            self._misses[p] = last
            if last[-1] and sum(last) >= MISSES_DEAD:
                self.dead.add(p)
        self.markers += 1
        self.missed += self.physical - len(self.seen)
        self._before = fields


@dataclass
class LaneHealth:
    """Corrections of one end since the last marker; `weak` lanes stay out until the session ends.

    physical: lanes of the link; limit: corrections that a lane must have at least to leave.
    """

    physical: int
    limit: int
    weak: set[int] = field(default_factory=set)
    counts: dict[int, int] = field(default_factory=dict)
    flits: int = 0
    lost: int = 0

    def flit(self, located: list[int], lost: bool) -> None:
        """A flit in which the FEC located wrong bytes on these lanes; `lost`: refused or behind a gap."""
        self.flits += 1
        self.lost += lost
        for lane in located:
            self.counts[lane] = self.counts.get(lane, 0) + 1

    def marker(self, used: list[int], dead: Set[int] = frozenset()) -> int | None:
        """The interval ends; `used`: lanes in use; `dead`: before it. Returns the lane that becomes weak."""
        gone = self._leaves({lane: self.counts.get(lane, 0) for lane in used}, dead)
        if gone is not None:
            self.weak.add(gone)
        self.counts, self.flits, self.lost = {}, 0, 0
        return gone

    def _leaves(self, counts: dict[int, int], dead: Set[int]) -> int | None:
        able = sorted(set(counts) - self.weak - dead)
        if not able:
            return None
        worst = max(able, key=lambda lane: counts[lane])
        if counts[worst] < self.limit:
            return None
        clean = [lane for lane in counts if WEAK_RATIO * counts[lane] <= counts[worst]]
        if len(clean) < len(counts) // 2:
            return None
        left = self.physical - len(self.weak | dead) - 1
        replaced = left >= len(counts)
        narrower_carries_more = left > 0 and 2 * self.lost > self.flits
        return worst if replaced or narrower_carries_more else None
