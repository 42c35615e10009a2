"""What a system answers: which workloads it runs, with which parameters, and how one is run and told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from firmware.workload import Param
from sim.build.model import Built
from sim.report.verdict import passed
from sim.run.waves import Waves

__all__ = ["Asked", "BuildAsked", "Offer", "Resolved", "System"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The words of `plexus run`; None: not said. `settings`: of --set."""

    workload: str
    params: Sequence[str] = ()
    config: str | None = None
    settings: Sequence[str] = ()
    array: str | None = None
    seed: int = 0
    waves: Waves | None = None
    fast: bool = False
    trace: bool = True
    check: str = "golden"
    model: Sequence[str] | None = None  # settings of the model that shall run it, on the same configuration; None: any
    out: Path | None = None
    arrays: Path | None = None  # .npz file with arrays instead of random values, of a workload of OWN_ARRAYS
    out_arrays: Path | None = None  # .npz file for the results


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildAsked:
    """The words of `plexus build`; `array` None: not said; `waves`: fst, vcd or none."""

    config: str
    settings: Sequence[str] = ()
    array: str | None = None
    waves: str = ""
    fast: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A workload as `plexus list` tells of it."""

    doc: str
    params: Mapping[str, Param]


class Resolved(Protocol):
    """A run with its parameters and configuration settled. `folder`: where report.json goes."""

    @property
    def folder(self) -> Path: ...


class System(Protocol):
    """A folder of sim/systems: SYSTEM in its system.py."""

    name: str

    @property
    def workloads(self) -> Mapping[str, Offer]:
        """What it runs, by name; no other system has one of these names."""
        ...

    @property
    def tops(self) -> Mapping[str, Callable[[BuildAsked], Built]]:
        """Tops that `plexus build` builds as a run does, not as a bench."""
        return {}

    def resolve(self, asked: Asked) -> Any:
        """A Resolved. Errors: PlexusError, ConfigError, KernelError, one sentence, for what is not taken."""
        ...

    def run(self, run: Any, console: Console) -> dict[str, Any]:
        """Build, simulate, check; the report, which is in the folder of the Resolved too. `console` shows progress."""
        ...

    def show(self, report: Mapping[str, Any], console: Console) -> None:
        """Print the report: the verdict first."""
        ...

    def group(self, run: Any) -> str:
        """Names what runs must have in common for one model to serve them."""
        ...

    def model(self, runs: Sequence[Any]) -> Sequence[str] | None:
        """Settings of the model that serves these runs of a group, as `Asked.model` has them; None: a run finds it."""
        return None

    @property
    def ledger_sections(self) -> Sequence[str]:
        """Where the ledger of cycles has its runs: configurations that --config names; () for a system without any."""
        return ()

    @property
    def has_page(self) -> bool:
        """Whether `plexus report` makes a page of its reports."""
        return True

    def exact_figures(self, report: Mapping[str, Any]) -> Mapping[str, int]:
        """What the ledger of cycles keeps of a report: figures that no load of the host changes."""
        ...

    def passed(self, report: Mapping[str, Any]) -> bool:
        """Whether the exit code is 0: one rule for all systems."""
        return passed(report)
