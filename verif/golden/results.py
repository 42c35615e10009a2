"""What a golden machine takes and gives: images, regions, faults, results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtl.contract.isa import Cause, Queue
from rtl.contract.memmap import Space

__all__ = ["U8", "Fault", "ImageLike", "RegionLike", "RunResult"]

U8 = NDArray[np.uint8]


class RegionLike(Protocol):
    """A named array in a memory; `dtype` names the NumPy dtype of its bits."""

    @property
    def space(self) -> Space: ...
    @property
    def offset(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


class ImageLike(Protocol):
    """What the machine needs of an image: contents of HBM, queues, rings, outputs."""

    @property
    def queues(self) -> Mapping[Queue, tuple[int, int]]: ...
    @property
    def rings(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def outputs(self) -> Mapping[str, Any]: ...
    def memory(self) -> U8: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a queue or a ring ("ring 0") halted, and at which of its items."""

    queue: str
    sequence: int
    cause: Cause
    address: int


@dataclass(slots=True, kw_only=True)
class RunResult:
    """What is there after a run: bits of the outputs, memories as bytes [partition, byte], faults.

    `printed`: what cores of the programmable engine have printed, of those that have printed anything.
    """

    outputs: dict[str, np.ndarray]
    sbuf: U8
    psum: U8
    hbm: U8
    semaphores: list[int]
    faults: list[Fault]
    retired: dict[Queue, int]
    printed: dict[int, bytes] = field(default_factory=dict[int, bytes])
