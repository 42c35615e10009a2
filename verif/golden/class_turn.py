"""Which traffic class a mover of the DMA serves next (docs/dma.md, Classes), in plain integers."""

from collections.abc import Collection

from rtl.contract.config_sections import DmaConfig

__all__ = ["ClassTurn", "entitled"]

_WINDOW = 64  # units of 16 bytes of which the strict class has its cap
_BURST = 16  # caps that it may have at once


class ClassTurn:
    """Deficits, turn and cap. In each cycle, in this order: `charge`, with the length of what went in the cycle before;
    `choose`, who goes; `passed`, with who went."""

    def __init__(self, cfg: DmaConfig):
        self.cfg = cfg
        self.deficits = [0] * len(cfg.weights)
        self.last = -1  # class served last by its deficit
        self.over = 0
        self._contested = False  # others waited too when the piece that went last was taken
        self._paid = -1  # class charged in this cycle

    def _strict(self, there: Collection[int]) -> bool:
        cap = self.cfg.strict_cap
        alone = set(there) == {self.cfg.strict_class}
        return self.cfg.strict_class in there and (alone or self.over <= _BURST * cap * (_WINDOW - cap))

    def _asking(self, there: Collection[int]) -> list[int]:
        return [c for c in there if c != self.cfg.strict_class]

    def _rich(self, there: Collection[int]) -> list[int]:
        asking = self._asking(there)
        return asking if len(asking) == 1 else [c for c in asking if self.deficits[c] > 0]

    def choose(self, there: Collection[int]) -> int | None:
        """The class that goes, of those that have a piece (at least one); None: all are still being raised."""
        if self.cfg.priority:
            return min(there)
        if self._strict(there):
            return self.cfg.strict_class
        return min(self._rich(there), key=lambda c: (c <= self.last, c), default=None)

    def passed(self, there: Collection[int], took: int | None) -> None:
        """The cycle ends; `took`: the class that went."""
        asking = self._asking(there)
        raised = asking if not self._rich(there) else []
        if took is not None:
            strict = took == self.cfg.strict_class
            self._contested = len(there) > 1 if strict else len(asking) > 1
            self.last = self.last if strict else took
        for c in range(len(self.deficits)):
            if c in raised:
                self.deficits[c] += self.cfg.weights[c]
            elif c not in asking and c != self._paid:
                self.deficits[c] = min(self.deficits[c], 0)
        self._paid = -1

    def charge(self, class_: int, units: int) -> None:
        """The piece that went in the cycle before had so many units of 16 bytes."""
        cap = self.cfg.strict_cap
        if class_ != self.cfg.strict_class:
            if self._contested:
                self.deficits[class_] -= units
                self._paid = class_
            self.over = max(0, self.over - units * cap)
        elif self._contested:
            self.over += units * (_WINDOW - cap)


def entitled(cfg: DmaConfig) -> list[float]:
    """Shares of the classes while all of them wait."""
    if cfg.priority:
        return [1.0, 0.0, 0.0, 0.0]
    strict = cfg.strict_cap / _WINDOW if cfg.strict_class >= 0 else 0.0
    weights = [0 if c == cfg.strict_class or c >= cfg.classes else w for c, w in enumerate(cfg.weights)]
    return [strict if c == cfg.strict_class else (1 - strict) * w / sum(weights) for c, w in enumerate(weights)]
