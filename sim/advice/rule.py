"""A rule of the table, and what it found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sim.advice.facts import Facts

__all__ = ["Advice", "Finding", "Rule"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that applies: `share` of the run's cycles that it is about, a sentence without its full stop in which
    {section.key} stands for a field of the configuration, and the fields to change, all together."""

    share: float
    text: str
    settings: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`when` and `advice` are what docs/advice.md says; `{threshold}` in `when` is the threshold, a share.
    `reads`: keys of report.json that it looks at, `path` for the critical path of the trace."""

    name: str
    when: str
    threshold: float
    reads: tuple[str, ...]
    advice: str
    find: Callable[[Facts, float], Finding | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One entry of `advice` in report.json."""

    rule: str
    text: str
    share: float
    settings: tuple[str, ...]  # key=value

    def as_dict(self) -> dict[str, Any]:
        """As report.json has it."""
        return {"rule": self.rule, "text": self.text, "share": self.share, "set": list(self.settings)}
