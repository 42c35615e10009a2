"""What runs a program. A program does not know which of these it is."""

import importlib
from typing import Any, Protocol

import numpy as np

from firmware.image import Image, Region

__all__ = ["DEVICES", "Device", "find_device"]

DEVICES = {
    "golden": "verif.golden.machine:GoldenMachine",
    "sampled": "verif.golden.sampling:SampledMachine",
    "rtl": "sim.systems.core.verilated:VerilatedDevice",
}
"""Devices by name; resolved when needed, for this room does not import verif."""


class Device(Protocol):
    """Load an image, run it, read what is there. `run` of a device that knows time gives a RunResult;
    of the golden machine its own, which has `outputs` and `faults` too."""

    name: str

    def load(self, image: Image) -> None: ...
    def run(self) -> Any: ...
    def read(self, region: Region) -> np.ndarray: ...


def find_device(name: str) -> Any:
    """The class of a device."""
    module, _, attribute = DEVICES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
