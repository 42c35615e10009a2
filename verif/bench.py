"""What a bench declares of itself: `RUNS`, a tuple of `Run` at the top level of verif/benches/<area>/bench_<unit>.py.

    RUNS = (Run("fifo", options={"shape": 16, "depth": 4}, faults=EVERY),)

tests/sim/test_benches.py makes a test of every seed and every fault (`verif/collect.py`).
"""

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from rtl.contract.any_config import AnyConfig

__all__ = ["EVERY", "REST", "SEEDS", "Fault", "Run", "noticed_by"]

SEEDS = tuple(int(s) for s in os.environ.get("PLEXUS_SEEDS", "1 2 3").split())
"""Seeds of every random bench; PLEXUS_SEEDS chooses others."""

EVERY = "(every fault)"
"""All faults that the class of the top asks for itself, none of its parts."""
REST = "(all other faults)"
"""Those of EVERY that no declaration names."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A planted fault that a run must notice.

    name: what it does wrong, as the top or a part of it calls it (rtl/base/fault.py); EVERY or REST.
    by: the test of the bench that must notice it alone; None is the whole bench. hangs: it stops the unit, so that a
    test's timeout is the check.
    """

    name: str
    _: KW_ONLY
    by: str | None = None
    hangs: bool = False


def noticed_by(test: str, *names: str) -> tuple[Fault, ...]:
    """Faults of these names, each noticed by that test of the bench alone."""
    return tuple(Fault(name, by=test) for name in names)


@dataclass(frozen=True, slots=True)
class Run:
    """The bench on one build of a top.

    config: name, or values, of a core, link or switch. options: keywords of the top. seeds: of runs that must be green;
    () if another Run of this bench on the same build has some. faults: what it must notice on that build, seed 1.
    planted: the build has the planted faults in it (inactive), so that runs with and without them share one. slow: it
    takes minutes, so it starts before others. regress: another size or form of what other runs of the bench check; it
    has no faults of its own, and takes part in `make regress` and `make coverage`, not in `make test`. mutated: `make
    mutants` takes this build of the top and not the first one with faults.
    """

    top: str
    _: KW_ONLY
    config: str | AnyConfig = "tiny"
    options: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = SEEDS
    faults: str | tuple[str | Fault, ...] = ()
    planted: bool = True
    slow: bool = False
    regress: bool = False
    mutated: bool = False

    @property
    def wanted(self) -> tuple[Fault, ...]:
        """`faults`, each as a Fault."""
        listed = (self.faults,) if isinstance(self.faults, str) else self.faults
        return tuple(fault if isinstance(fault, Fault) else Fault(fault) for fault in listed)
