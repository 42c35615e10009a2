"""Which traffic class a mover of the DMA serves next (docs/dma.md, Classes), in plain integers."""

from collections.abc import Collection

from rtl.contract.config_sections import DmaConfig

__all__ = ["ClassTurn", "StrictCap", "entitled", "first_class"]

_WINDOW = 64  # units of 16 bytes of which the strict class has its cap
_BURST = 16  # caps that it may have at once


def first_class(cfg: DmaConfig) -> int | None:
    """The class that goes before the others."""
    if cfg.classes == 1:
        return None
    if cfg.priority:
        return 0
    return cfg.strict_class if cfg.strict_class >= 0 else None


class ClassTurn:
    """Deficits and turn of the classes that share. In each cycle, in this order: `charge`, with the length of what went
    in the cycle before; `choose`, who goes; `passed`, with who went."""

    def __init__(self, cfg: DmaConfig):
        self.cfg = cfg
        self.deficits = [0] * len(cfg.weights)
        self.last = -1  # class served last
        self._contested = False  # others waited too when the piece that went last was taken
        self._paid = -1  # class charged in this cycle

    def _rich(self, there: Collection[int]) -> list[int]:
        return list(there) if len(there) == 1 else [c for c in there if self.deficits[c] > 0]

    def choose(self, there: Collection[int]) -> int | None:
        """The class that goes, of those that have a piece (at least one); None: all are still being raised."""
        if self.cfg.priority:
            return min(there)
        return min(self._rich(there), key=lambda c: (c <= self.last, c), default=None)

    def passed(self, there: Collection[int], took: int | None) -> None:
        """The cycle ends; `took`: the class that went."""
        raised = there if not self._rich(there) else ()
        if took is not None:
            self._contested = len(there) > 1
            self.last = took
        for c in range(len(self.deficits)):
            if c in raised:
                self.deficits[c] += self.cfg.weights[c]
            elif c not in there and c != self._paid:
                self.deficits[c] = min(self.deficits[c], 0)
        self._paid = -1

    def charge(self, class_: int, units: int) -> None:
        """The piece that went in the cycle before had so many units of 16 bytes."""
        if self._contested:
            self.deficits[class_] -= units
            self._paid = class_


class StrictCap:
    """What the strict class had beyond its cap. In each cycle: `opens`, then `left`."""

    def __init__(self, cfg: DmaConfig):
        self.cfg = cfg
        self.over = 0

    def opens(self, waits: bool) -> bool:
        """Whether its next piece may leave while others wait or do not."""
        cap = self.cfg.strict_cap
        return self.cfg.priority or not waits or self.over <= _BURST * cap * (_WINDOW - cap)

    def left(self, waits: bool, units: int, others: int) -> None:
        """So many units of this class, and of others, left in this cycle."""
        cap = self.cfg.strict_cap
        self.over = max(0, self.over + (units * (_WINDOW - cap) if waits else 0) - others * cap)


def entitled(cfg: DmaConfig) -> list[float]:
    """Shares of the classes while all of them wait."""
    if cfg.priority:
        return [1.0, 0.0, 0.0, 0.0]
    strict = cfg.strict_cap / _WINDOW if cfg.strict_class >= 0 else 0.0
    weights = [0 if c == cfg.strict_class or c >= cfg.classes else w for c, w in enumerate(cfg.weights)]
    return [strict if c == cfg.strict_class else (1 - strict) * w / sum(weights) for c, w in enumerate(weights)]
