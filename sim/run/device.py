"""What runs a program. A program does not know which of these it is."""

import importlib
from typing import Any, Protocol

import numpy as np

from firmware.image import Image, Region

__all__ = ["DEVICES", "MEANINGS", "Device", "find_device", "find_meaning"]

DEVICES = {
    "golden": "verif.golden.machine:GoldenMachine",
    "golden_cores": "verif.golden.cores:GoldenCores",
    "sampled": "verif.golden.sampling:SampledMachine",
    "rtl": "sim.systems.core.verilated:VerilatedDevice",
}
"""Devices by name; resolved when needed, for this room does not import verif."""

MEANINGS = "verif.golden.gpsimd.operators:MEANINGS"
"""What operators of the GPSIMD engine mean, by name."""


class Device(Protocol):
    """Load an image, run it, read what is there. `run` of a device that knows time gives a RunResult;
    of the golden machine its own, which has `outputs` and `faults` too."""

    name: str

    def load(self, image: Image) -> None: ...
    def run(self) -> Any: ...
    def read(self, region: Region) -> np.ndarray: ...


def find_device(name: str) -> Any:
    """The class of a device."""
    return _found(DEVICES[name])


def find_meaning(operator: str) -> Any:
    """The function in NumPy that says what an operator must leave."""
    return _found(MEANINGS)[operator]


def _found(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
