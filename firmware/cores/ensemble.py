"""Programs of several cores that belong together, and what they must leave."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from firmware.program import Program
from firmware.views import KernelError
from rtl.contract.config import Config
from rtl.contract.isa import Queue

__all__ = ["Ensemble", "Mark", "numbered"]


@dataclass(frozen=True, slots=True)
class Mark:
    """An instruction whose end tells a time: place `sequence` in `queue` of the core with the id `core`."""

    core: int
    queue: Queue
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """A program for each core. `truth`: bits of outputs by (core id, name), from NumPy, where it can tell them.
    `marks`: by name, in order. `metrics`: of outputs by (core id, name), how far they are from the truth."""

    programs: tuple[Program, ...]
    truth: Mapping[tuple[int, str], np.ndarray]
    marks: Mapping[str, tuple[Mark, ...]]
    metrics: Callable[[Mapping[tuple[int, str], np.ndarray]], dict[str, Any]] | None = None


def numbered(cfg: Config, number: int) -> tuple[int, int, int, int]:
    """The place (rack, server, chip, core) of an endpoint number. Errors: KernelError if there is none."""
    try:
        return cfg.fabric.endpoint_map.decode(number)
    except ValueError as error:
        raise KernelError(str(error)) from None
