"""Whether a run passed: one rule for every system."""

from collections.abc import Mapping
from typing import Any

__all__ = ["passed"]

_WHOLE = ("done", "unresolved")
"""Ends that are none of a fault: unresolved is what an end of a link or a switch has said that it does not know."""


def passed(report: Mapping[str, Any]) -> bool:
    """Whether the run ended by itself, without a fault, with every bit right, or not looked at by request."""
    return bool(report["match"]) and report["end"] in _WHOLE and not report.get("faults")
