"""Golden rule of weak lanes (docs/lanes.md): which lane leaves at the end of a marker interval."""

from dataclasses import dataclass, field

from rtl.contract.lanes import WEAK_RATIO

__all__ = ["LaneHealth"]


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

    def marker(self, used: list[int]) -> int | None:
        """The interval ends; `used`: lanes in use. Returns the lane that becomes weak."""
        gone = self._leaves({lane: self.counts.get(lane, 0) for lane in used})
        if gone is not None:
            self.weak.add(gone)
        self.counts, self.flits, self.lost = {}, 0, 0
        return gone

    def _leaves(self, counts: dict[int, int]) -> int | None:
        able = sorted(set(counts) - self.weak)
        if not able:
            return None
        worst = max(able, key=lambda lane: counts[lane])
        if counts[worst] < self.limit:
            return None
        clean = [lane for lane in counts if WEAK_RATIO * counts[lane] <= counts[worst]]
        if len(clean) < len(counts) // 2:
            return None
        left = self.physical - len(self.weak) - 1
        replaced = left >= len(counts)
        narrower_carries_more = left > 0 and 2 * self.lost > self.flits
        return worst if replaced or narrower_carries_more else None
