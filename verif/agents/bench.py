"""What every bench starts with: configuration, seed, planted fault, clock, reset."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from rtl.contract.config import Config
from rtl.contract.limits import limits
from sim.run.manifest import MANIFEST_VARIABLE, Manifest
from verif.agents.toggles import watch

__all__ = ["Bench", "manifest"]


def manifest() -> Manifest:
    """What this run was started for. At import of a bench: configuration and options only, for the process in which it
    is imported becomes many runs."""
    return _read(os.environ[MANIFEST_VARIABLE])


@cache
def _read(path: str) -> Manifest:
    return Manifest.read(Path(path))


class Bench:
    """One test's view of the device under test.

    `cfg`, `options`, `plant`: what was built, and the name of the fault that is planted, if one is; `rng`: random
    numbers of this test, the same for the same seed; `clk`: the handle to wait on, the only one (edges of derived
    clocks are seen too late).
    """

    def __init__(self, dut: Any):
        m = manifest()
        self.dut = dut
        self.manifest = m
        self.cfg = m.config
        self.options = m.options
        self.plant = m.plant
        self.rng = np.random.default_rng(cocotb.RANDOM_SEED)
        self.clk: Any = getattr(dut, "clk", None)
        self.edge: Any = RisingEdge(self.clk) if self.clk is not None else None
        if isinstance(self.cfg, Config):
            self.limit(self.cfg)

    def limit(self, cfg: Config) -> None:
        """Let the unit do what one built for `cfg` would, where it can; before `start`. Without it, what is built."""
        for name, value in limits(cfg).items():
            if hasattr(self.dut, f"limit_{name}"):
                getattr(self.dut, f"limit_{name}").value = value

    async def start(self, *, reset_cycles: int = 2) -> None:
        """Choose the planted fault, start the clock, reset. Set idle inputs before. Leaves right after
        a rising edge."""
        if hasattr(self.dut, "plant"):
            self.dut.plant.value = self.manifest.plant_number
        if not self.plant:
            watch(self.dut, self.clk, self.manifest.folder)
        if self.clk is None:
            return
        Clock(self.clk, 2, "ns", impl="gpi").start()
        await self.reset(reset_cycles)

    async def reset(self, cycles: int = 2) -> None:
        """Reset for some cycles."""
        self.dut.rst.value = 1
        await ClockCycles(self.clk, cycles)
        self.dut.rst.value = 0
        await RisingEdge(self.clk)

    async def cycles(self, count: int) -> None:
        """Let some cycles pass."""
        await ClockCycles(self.clk, count)
