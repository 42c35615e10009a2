"""An operator of the GPSIMD engine beside what it means, and beside what it cannot do without."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from firmware.program import Meaning
from rtl.contract.config import Config
from rtl.contract.gpsimd import cores, lanes
from sim.run.compare import Comparison, compare
from sim.run.device import find_meaning
from sim.run.result import RunResult

__all__ = ["meant", "operator_metrics", "with_meaning"]


def meant(meaning: Meaning) -> dict[str, np.ndarray]:
    """Bits of outputs by name."""
    arrays = find_meaning(meaning.operator)(**meaning.given)
    return {name: array.view(f"u{array.itemsize}") for name, array in arrays.items()}


def with_meaning(comparison: Comparison, outputs: Mapping[str, np.ndarray], meaning: Meaning) -> Comparison:
    """A comparison with the golden machine, which executes the same instructions, held to the meaning too."""
    found = compare(outputs, meant(meaning))
    return replace(comparison, match=comparison.match and found.match, first=comparison.first or found.first)


def operator_metrics(cfg: Config, result: RunResult, meaning: Meaning) -> dict[str, Any]:
    """GPSIMD cycles from the start of the run to the end of the last core, and two bounds in the same: the bus of
    scalar accesses takes one a cycle, which binds cores without vectors; ports of vectors take L elements a cycle and
    core each way."""
    ran = [core.busy + sum(core.stall.values()) for core in result.gpsimd_cores]
    cycles, both = max(ran, default=0), meaning.loads + meaning.stores
    wide = cores(cfg.partitions) * lanes(cfg.partitions)
    return {
        "operator": meaning.operator,
        "gpsimd_cycles": cycles,
        **({} if cfg.gpsimd.vectors else {"gpsimd_bus_cycles": both}),
        "gpsimd_port_cycles": -(-max(meaning.loads, meaning.stores) // wide),
        "gpsimd_cycles_per_element": round(cycles / meaning.elements, 3),
    }
