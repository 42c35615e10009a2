"""Columns of area for the points of a sweep: once for all that have the same hardware."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rtl.contract.config_fields import built_values
from sim.area.area import area_of
from sim.area.subject import WHOLE
from sim.errors import PlexusError
from sim.explore.more_columns import AREA_COLUMNS
from sim.explore.plan import task_of
from sim.explore.points import Point
from sim.explore.worker import asked_of
from sim.progress import progress
from sim.systems.configurations import kind_of_type
from sim.systems.registry import system_of_workload

__all__ = ["areas_of"]


def areas_of(
    points: Sequence[Point], rows: Mapping[str, Mapping[str, Any]], folder: Path, jobs: int
) -> dict[str, dict[str, Any]]:
    """The columns by the key of a point; of points that were refused none. What has no area is told once, and its
    points have empty columns."""
    known: dict[str, dict[str, Any]] = {}
    found: dict[str, dict[str, Any]] = {}
    for point in points:
        if rows.get(point.key, {}).get("status", "refused") == "refused" or point.key in found:
            continue
        system = system_of_workload(point.workload)
        cfg = system.resolve(asked_of(task_of(point, folder, None))).cfg
        kind = kind_of_type(type(cfg))
        assert kind is not None  # systems take no others
        key = json.dumps([kind.kind, built_values(cfg)], sort_keys=True)
        if key not in known:
            try:
                with progress(f"area of {point.variant}") as step:
                    total = area_of(WHOLE[kind.kind], cfg, jobs=jobs, step=step)["total"]
                known[key] = {column: total[name] for column, name in AREA_COLUMNS.items()}
            except PlexusError as error:
                print(f"plexus: {point.variant} has no area: {error}", file=sys.stderr)
                known[key] = {}
        found[point.key] = known[key]
    return found
