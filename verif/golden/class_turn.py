"""Which traffic class a mover of the DMA serves next (docs/dma.md, Classes), in plain integers."""

from collections.abc import Collection

from rtl.contract.config_sections import DmaConfig

__all__ = ["ClassTurn", "entitled"]

_WINDOW = 64  # units of 16 bytes of which the strict class has its cap
_BURST = 16  # caps that it may have at once


class ClassTurn:
    """Deficits, turn and cap; `choose` says who goes, `taken` that it went, `charge` how long it was."""

    def __init__(self, cfg: DmaConfig):
        self.cfg = cfg
        self.deficits = [0] * len(cfg.weights)
        self.last = -1  # class served last by its deficit
        self.over = 0
        self._waited = False

    def _strict(self, there: Collection[int]) -> bool:
        cap = self.cfg.strict_cap
        alone = set(there) == {self.cfg.strict_class}
        return self.cfg.strict_class in there and (alone or self.over <= _BURST * cap * (_WINDOW - cap))

    def _raised(self, there: Collection[int]) -> list[int]:
        asking = [c for c in there if c != self.cfg.strict_class]
        factor = 0
        while asking and not any(self.deficits[c] + factor * self.cfg.weights[c] > 0 for c in asking):
            factor = 2 * factor or 1
        return [d + factor * self.cfg.weights[c] if c in asking else d for c, d in enumerate(self.deficits)]

    def choose(self, there: Collection[int]) -> int:
        """The class that goes, of those that have a piece (at least one)."""
        if self.cfg.priority:
            return min(there)
        if self._strict(there):
            return self.cfg.strict_class
        rich = [c for c, d in enumerate(self._raised(there)) if d > 0 and c in there and c != self.cfg.strict_class]
        return min(rich, key=lambda c: (c <= self.last, c))

    def taken(self, there: Collection[int]) -> None:
        """A piece of the class that `choose` names has left."""
        if self.cfg.priority:
            return
        strict = self._strict(there)
        self._waited = strict and len(there) > 1
        if not strict:
            self.last = self.choose(there)
        self.deficits = self._raised(there)
        self.passed(there)

    def passed(self, there: Collection[int]) -> None:
        """A cycle has gone by: who has nothing keeps no credit."""
        self.deficits = [d if c in there else min(d, 0) for c, d in enumerate(self.deficits)]

    def charge(self, class_: int, units: int) -> None:
        """The piece that was taken last had so many units of 16 bytes."""
        cap = self.cfg.strict_cap
        if class_ != self.cfg.strict_class:
            self.deficits[class_] -= units
            self.over = max(0, self.over - units * cap)
        elif self._waited:
            self.over += units * (_WINDOW - cap)


def entitled(cfg: DmaConfig) -> list[float]:
    """Shares of the classes while all of them wait."""
    if cfg.priority:
        return [1.0, 0.0, 0.0, 0.0]
    strict = cfg.strict_cap / _WINDOW if cfg.strict_class >= 0 else 0.0
    weights = [0 if c == cfg.strict_class else w for c, w in enumerate(cfg.weights)]
    return [strict if c == cfg.strict_class else (1 - strict) * w / sum(weights) for c, w in enumerate(weights)]
