"""The systems there are, and which of them runs or builds what."""

from sim.errors import PlexusError
from sim.systems.folders import modules
from sim.systems.system import Offer, System

__all__ = ["offers", "system_of_top", "system_of_workload", "systems"]

_PLACES = "sim.systems.*.system"


def systems() -> list[System]:
    """All, in the order of their folders."""
    return [module.SYSTEM for module in modules(_PLACES)]


def offers() -> dict[str, Offer]:
    """All workloads by name."""
    return {name: offer for one in systems() for name, offer in one.workloads.items()}


def system_of_workload(workload: str) -> System:
    """The system that runs it. Errors: PlexusError lists all workloads."""
    for one in systems():
        if workload in one.workloads:
            return one
    raise PlexusError(f"there is no workload {workload!r}; there are {', '.join(offers())}")


def system_of_top(top: str) -> System | None:
    """The system that builds a top in a way of its own."""
    return next((one for one in systems() if top in one.tops), None)
