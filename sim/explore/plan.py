"""Which models the points of a sweep need: as few as serve them all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firmware.views import KernelError
from rtl.contract.config_fields import ConfigError
from sim.errors import PlexusError
from sim.explore.points import Point
from sim.explore.worker import asked_of
from sim.systems.registry import system_of_workload

__all__ = ["Group", "Plan", "make_plan", "task_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Points that one model serves; `model`: its settings, None if a run finds its own."""

    model: Sequence[str] | None
    points: list[Point]


@dataclass(slots=True)
class Plan:
    """Groups in the order of their first points, and points that no configuration or parameter allows, with why."""

    groups: list[Group] = field(default_factory=list)
    refused: list[tuple[Point, str]] = field(default_factory=list)


def task_of(
    point: Point, folder: Path, model: Sequence[str] | None, *, fast: bool = False, page: bool = False
) -> dict[str, Any]:
    """What a worker is told."""
    return {
        "workload": point.workload,
        "params": dict(point.params),
        "base": point.base,
        "settings": point.settings,
        "seed": point.seed,
        "trace": point.trace,
        "check": point.check,
        "model": list(model) if model is not None else None,
        "out": str(folder / "runs" / point.key),
        "fast": fast,
        "page": page,
    }


def make_plan(points: Sequence[Point], folder: Path, *, fast: bool = False) -> Plan:
    """Each point in the group of its model; what cannot be is refused in its own sentence."""
    plan = Plan()
    runs: dict[str, list[tuple[Point, Any]]] = {}
    for point in points:
        system = system_of_workload(point.workload)
        try:
            run = system.resolve(asked_of(task_of(point, folder, None, fast=fast)))
            key = system.group(run)
        except (ConfigError, KernelError, PlexusError) as error:
            plan.refused.append((point, str(error)))
            continue
        runs.setdefault(f"{system.name} {key}", []).append((point, run))
    for found in runs.values():
        system = system_of_workload(found[0][0].workload)
        plan.groups.append(Group(model=system.model([run for _, run in found]), points=[point for point, _ in found]))
    return plan
