"""A run in a line."""

from collections.abc import Mapping
from typing import Any

from sim.run.variant import described

__all__ = ["title_of"]

_CHARACTERS = 40  # of a parameter


def title_of(report: Mapping[str, Any]) -> str:
    """Workload, parameters that have a value, configuration."""
    base = report.get("config_base", report["config"])
    config = described(report["config"], base, report["config_changes"], report.get("config_file"))
    given = {name: str(value) for name, value in report["params"].items() if value is not None}
    params = " ".join(f"{name}={value[:_CHARACTERS]}" for name, value in given.items())
    return f"{report['workload']} {params} on {config}"
