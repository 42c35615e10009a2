"""Which bits of a unit's inputs a bench drives to 0 and to 1, and which outputs it reads: when PLEXUS_TOGGLES is set.

`verif/checks/undriven.py` reads what this leaves: an input bit that never moves hides a fault behind it, and so does an
output that nobody reads.
"""

import atexit
import json
import os
from pathlib import Path
from typing import Any

import cocotb
from cocotb.handle import ValueObjectBase
from cocotb.triggers import ReadOnly, RisingEdge, Timer

__all__ = ["TOGGLES", "watch"]

TOGGLES = "PLEXUS_TOGGLES"
"""The environment variable that asks for it."""

_IDLE = ("clk", "rst", "plant")
_seen: dict[str, list[int]] = {}
"""By input: its width, the bits that were 1, the bits that were 0."""
_read: dict[str, bool] = {}
"""By output: a bench has read it."""


def watch(dut: Any, clk: Any, folder: Path) -> None:
    """Look at every input at every edge of the clock from now on, once a step of time where there is none."""
    if TOGGLES not in os.environ:
        return
    ports = json.loads((folder.parent / "ports.json").read_text())
    inputs = {name: getattr(dut, name) for name, way, _ in ports if way == "input" and name not in _IDLE}
    if not _seen:
        _seen.update({name: [width, 0, 0] for name, way, width in ports if name in inputs and way == "input"})
        _read.update({name: False for name, way, _ in ports if way == "output"})
        _note_reads()
        atexit.register(lambda: _save(folder))
    cocotb.start_soon(_look(inputs, clk, folder))


def _note_reads() -> None:
    whole = ValueObjectBase.value

    def value(handle: Any) -> Any:
        if handle._name in _read:
            _read[handle._name] = True
        return whole.__get__(handle)

    ValueObjectBase.value = property(value, whole.fset)  # pyright: ignore[reportAttributeAccessIssue]


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
    (folder / "reads.json").write_text(json.dumps(_read))
