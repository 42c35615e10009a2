"""A report as columns of a table, and which of them no load of the host changes."""

from collections.abc import Mapping
from typing import Any

__all__ = ["exact", "flat"]

_OF_THE_HOST = frozenset(
    "wall_seconds cpu_seconds cycles_per_second total_seconds total_cpu_seconds cpu_parts golden fast "
    "threads core_cycles_per_cpu_second".split()
)
_LEFT_OUT = frozenset(
    "tool_versions config_resolved params notes advice conflicts config_changes config_model port_counters mismatch "
    "faults unfinished link switch".split()
)


def exact(column: str) -> bool:
    """Whether no load of the host changes it; what one does is in rows.jsonl and not in the table."""
    return _OF_THE_HOST.isdisjoint(column.split("."))


def flat(report: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Numbers, words and flags of a report by `part.part.name`; lists of numbers by their places."""
    found: dict[str, Any] = {}
    for key, value in report.items():
        if key == "events" or not prefix and key in _LEFT_OUT:
            continue
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found |= flat(value, f"{name}.")
        elif isinstance(value, list):
            found |= flat({str(n): one for n, one in enumerate(value)}, f"{name}.")
        elif value is None or isinstance(value, (str, int, float, bool)):
            found[name] = value
    return found
