"""Functional coverage: named bins that a bench must have hit before its green counts."""

import json
import os
import re
from collections.abc import Iterable

from sim.run.manifest import MANIFEST_VARIABLE
from verif.agents.bench import manifest

__all__ = ["Coverage"]


class Coverage:
    """Bins of one unit. Make one at module level, so that all tests of a bench add to it.

    `hit` an undeclared bin is an error. `require_all` belongs into the last test of a bench, or at the
    end of each test whose stimulus must hit everything. Tests that pytest runs itself may have one too.
    """

    def __init__(self, name: str, bins: Iterable[str]):
        self.name = name
        self.hits: dict[str, int] = {b: 0 for b in bins}

    def hit(self, name: str, times: int = 1) -> None:
        """`name` happened."""
        if name not in self.hits:
            raise KeyError(f"coverage {self.name} has no bin {name!r}; it has {', '.join(self.hits)}")
        self.hits[name] += times

    def when(self, condition: object, name: str) -> None:
        """`name` happened if `condition` holds."""
        if condition:
            self.hit(name)

    def rule_out(self, condition: object, *names: str) -> None:
        """If `condition` holds, this configuration cannot show these bins: not asked for, and not counted as hit."""
        for name in names if condition else ():
            if not self.hits[name]:
                del self.hits[name]

    @property
    def missing(self) -> list[str]:
        """Bins never hit."""
        return [name for name, count in self.hits.items() if count == 0]

    def write(self) -> None:
        """Leave the counts in the run's folder, where `make coverage` finds them; outside a bench there is none."""
        if MANIFEST_VARIABLE not in os.environ:
            return
        file = manifest().folder / f"coverage-{re.sub(r'[^A-Za-z0-9_.-]', '_', self.name)}.json"
        file.write_text(json.dumps({"name": self.name, "top": manifest().top, "bins": self.hits}, indent=1))

    def require_all(self) -> None:
        """Write, then fail if a bin was never hit. With a planted fault active it only writes."""
        self.write()
        if MANIFEST_VARIABLE not in os.environ or not manifest().plant:
            assert not self.missing, f"coverage {self.name}: never hit: {', '.join(self.missing)}"
