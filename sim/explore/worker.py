"""Runs points: a task a line of JSON on the standard input, an outcome a line on the standard output.

A process of its own, so that what crashes takes one row with it.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from firmware.views import KernelError, MemoryFullError
from rtl.contract.config_fields import ConfigError
from sim.build.model import delivered
from sim.build.step import BuildError
from sim.errors import PlexusError
from sim.explore.outcome import flat
from sim.systems.registry import system_of_workload
from sim.systems.system import Asked

__all__ = ["asked_of", "main", "outcome"]


def asked_of(task: dict[str, Any]) -> Asked:
    """What `plexus run` would have been asked for."""
    return Asked(
        workload=task["workload"],
        params=[f"{name}={value}" for name, value in task["params"].items()],
        config=task["base"],
        settings=task["settings"],
        seed=task["seed"],
        fast=task["fast"],
        trace=task["trace"],
        check=task["check"],
        model=task["model"],
        out=Path(task["out"]),
    )


def outcome(task: dict[str, Any]) -> dict[str, Any]:
    """Status, sentence and report of a task; it never raises what a point can be blamed for."""
    begin, cpu = time.monotonic(), sum(os.times()[:4])
    try:
        system = system_of_workload(task["workload"])
        report = system.run(system.resolve(asked_of(task)), Console(quiet=True))
        if task["page"] and system.has_page:
            from sim.page.write import write_page

            write_page(Path(task["out"]))
        found: dict[str, Any] = {
            "status": _status(report),
            "sentence": "" if _status(report) == "ok" else report.get("end_message", ""),
            "report": flat(report),
        }
    except MemoryFullError as error:
        found = {"status": "does_not_fit", "sentence": str(error)}
    except (ConfigError, KernelError) as error:
        found = {"status": "refused", "sentence": str(error)}
    except BuildError as error:
        found = {"status": "build_failed", "sentence": str(error)}
    except PlexusError as error:
        found = {"status": "crashed", "sentence": str(error)}
    if task.get("tell_models"):
        found["models"] = delivered()
    took = {"seconds": time.monotonic() - begin, "cpu_seconds": sum(os.times()[:4]) - cpu}
    return found | {name: round(value, 3) for name, value in took.items()}


def _status(report: dict[str, Any]) -> str:
    if report.get("faults"):
        return "fault"
    if report["match"] and report["end"] in ("done", "unresolved"):
        return "ok"
    return "mismatch" if report["end"] in ("done", "unresolved") else "timeout" if report["end"] == "limit" else "fault"


def main() -> int:
    """Until the input ends."""
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else writes there is no outcome
    for line in sys.stdin:
        task = json.loads(line)
        told.write(json.dumps(outcome(task)) + "\n")
        told.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
