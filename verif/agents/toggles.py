"""Which bits of a unit's inputs a bench drives to 0 and to 1, noted when PLEXUS_TOGGLES is set.

`verif/checks/undriven.py` reads what this leaves: an input bit that never moves hides a fault behind it.
"""

import atexit
import json
import os
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge, Timer

__all__ = ["TOGGLES", "watch"]

TOGGLES = "PLEXUS_TOGGLES"
"""The environment variable that asks for it."""

_IDLE = ("clk", "rst", "plant")
_seen: dict[str, list[int]] = {}
"""By input: its width, the bits that were 1, the bits that were 0."""


def watch(dut: Any, clk: Any, folder: Path) -> None:
    """Look at every input at every edge of the clock from now on, once a step of time where there is none."""
    if TOGGLES not in os.environ:
        return
    ports = json.loads((folder.parent / "ports.json").read_text())
    inputs = {name: getattr(dut, name) for name, way, _ in ports if way == "input" and name not in _IDLE}
    if not _seen:
        _seen.update({name: [width, 0, 0] for name, way, width in ports if name in inputs and way == "input"})
        atexit.register(lambda: _save(folder))
    cocotb.start_soon(_look(inputs, clk, folder))


async def _look(inputs: dict[str, Any], clk: Any, folder: Path) -> None:
    edge = RisingEdge(clk) if clk is not None else None
    try:
        while True:
            if edge is not None:
                await edge
            else:
                await Timer(1, "ns")
                await ReadOnly()
            for name, handle in inputs.items():
                seen = _seen[name]
                value = int(handle.value)
                seen[1] |= value
                seen[2] |= ~value
    finally:
        _save(folder)


def _save(folder: Path) -> None:
    full = {
        name: [width, ones & (1 << width) - 1, zeros & (1 << width) - 1] for name, (width, ones, zeros) in _seen.items()
    }
    (folder / "toggles.json").write_text(json.dumps(full))
