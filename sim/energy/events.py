"""What is measured: an event, the unit that it happens in, and how the unit is made to do it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rtl.contract.config import Config
from sim.energy.simulation import Simulation
from sim.energy.values import Source

__all__ = ["CYCLES", "Event", "Unit"]

CYCLES = 8
"""Counted of every stream."""


@dataclass(frozen=True, slots=True)
class Event:
    """`drive` prepares the first simulation, which is of the event's unit, clears its toggles, and then lets CYCLES
    pass, in each of which the event happens once. Other simulations are those of units `beside` it."""

    name: str
    per: str
    drive: Callable[[list[Simulation], Source], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A component by "module:Class", its keywords, what is measured on it. `cfg`: that it is made of, if of one.
    `beside`: units that make its inputs. `words`: 64 streams each."""

    name: str
    factory: str
    events: tuple[Event, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    cfg: Config | None = None
    beside: tuple["Unit", ...] = ()
    words: int = 1
