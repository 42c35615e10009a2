"""The runs of a sweep, in order, each with a key that names what it is of."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.explore.sweep import Sweep

__all__ = ["Point", "points_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run. `changes`: fields that are not as in `base`."""

    number: int
    variant: str  # its name, or the changed fields in words
    base: str
    base_hash: str  # of its values: a file may change
    changes: Mapping[str, Any]
    workload: str
    params: Mapping[str, str]
    layer: str  # of a table of layers that it is, or ""
    seed: int
    check: str
    trace: bool

    @property
    def settings(self) -> list[str]:
        """As --set takes them."""
        return [f"{key}={str(v).lower() if isinstance(v, bool) else v}" for key, v in self.changes.items()]

    @property
    def key(self) -> str:
        """Twelve hex digits: the same run has the same in every sweep."""
        what = [self.base_hash, dict(self.changes), self.workload, dict(self.params), self.seed, self.check, self.trace]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def command(self) -> str:
        """What runs it alone."""
        words = ["plexus run", self.workload, "--config", self.base]
        words += [f"--set {setting}" for setting in self.settings]
        words += [f"-p {name}={value}" for name, value in self.params.items()]
        words += [f"--seed {self.seed}"] if self.seed else []
        return " ".join(words + ([f"--check {self.check}"] if self.check != "golden" else []))


def points_of(sweep: Sweep) -> list[Point]:
    """Variant by variant, workload by workload, seed by seed; what comes twice comes once."""
    found: dict[tuple[str, str], Point] = {}  # layers of one size are one run, and a row each
    for n, changes in enumerate(sweep.variants):
        name = sweep.named.get(n) or " ".join(f"{key}={value}" for key, value in changes.items()) or sweep.base
        for workload, params, layer in sweep.workloads:
            for seed in sweep.seeds:
                point = Point(
                    number=len(found),
                    variant=name,
                    base=sweep.base,
                    base_hash=sweep.base_hash,
                    changes=changes,
                    workload=workload,
                    params=params,
                    layer=layer,
                    seed=seed,
                    check=sweep.check,
                    trace=sweep.trace,
                )
                found.setdefault((point.key, layer), point)
    return list(found.values())
