"""What calls of compiled graphs left: results with their reports, and what torch computed on the CPU."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.api.result import Result
from sim.torch.errors import TorchError

__all__ = ["CALLS", "Call", "OnCpu", "last"]

KEPT = 16


@dataclass(frozen=True, slots=True)
class OnCpu:
    """An operator that torch computes: its name, the user's line, why. `host`: it is the host's by design."""

    operator: str
    line: str
    why: str
    host: bool = False

    def __str__(self) -> str:
        return f"{self.operator} ({self.line or 'no line'}): {self.why}"


@dataclass(slots=True)
class Call:
    """One call of a compiled graph, or one operator on the device `plexus`.

    results: of its programs in order; reports: theirs. on_cpu: what was not computed on the machine.
    built: programs that were built for it; 0 if all were there. seconds: of the whole call.
    """

    results: list[Result] = field(default_factory=list)
    on_cpu: tuple[OnCpu, ...] = ()
    built: int = 0
    seconds: float = 0.0
    build_seconds: float = 0.0

    @property
    def reports(self) -> list[Mapping[str, object]]:
        """Of each program, as report.json has it."""
        return [result.report for result in self.results]

    @property
    def cycles(self) -> int | None:
        """Of all programs; None on the golden machine."""
        known = [result.cycles for result in self.results if result.cycles is not None]
        return sum(known) if known else None


CALLS: deque[Call] = deque(maxlen=KEPT)
"""The last calls, the newest at the end."""


def last() -> Call:
    """The call that ended last. Errors: TorchError if there was none."""
    if not CALLS:
        raise TorchError("nothing has run on the machine yet: call a compiled model first")
    return CALLS[-1]
