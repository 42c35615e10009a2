"""A trace and the program it is of, as plain arrays: trace.npz, column by column in docs/trace.md."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from sim.column_file import load_columns, save_columns

__all__ = ["FILE", "FORMAT", "NEVER", "Recorded", "load_trace", "save_trace"]

FILE = "trace.npz"
"""Beside report.json."""

FORMAT = 4
NEVER = -1
"""A cycle of what did not happen, a number of what there is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Every field is a column of trace.npz; docs/trace.md says what each holds. Cycles count as `report.json` does.

    Items are the instructions of the program, queue by queue; copies its descriptors, ring by ring. What records hold
    ends at `coarse_from`; behind it there are sums, in `coarse`. Of GPSIMD cores it ends at `cores_from`, with
    `cores_sums` behind it.
    """

    format: int
    cycles: int
    coarse_from: int
    lost: int
    texts: np.ndarray  # what columns ending in _text count from
    state_cycle: np.ndarray
    state_engine: np.ndarray
    state_value: np.ndarray
    refused_cycle: np.ndarray
    refused_ports: np.ndarray
    movers_cycle: np.ndarray
    movers_busy: np.ndarray
    beats: np.ndarray
    coarse: np.ndarray
    cores_from: int
    cores_recorded: int
    cores_step: np.ndarray
    cores_passed: np.ndarray
    cores_states: np.ndarray
    cores_sums: np.ndarray
    item_queue: np.ndarray
    item_sequence: np.ndarray
    item_opcode: np.ndarray
    item_beats: np.ndarray
    item_line_text: np.ndarray
    item_turn_text: np.ndarray
    item_shape_text: np.ndarray
    item_program_text: np.ndarray
    item_update: np.ndarray
    item_adds: np.ndarray
    item_waits: np.ndarray
    item_ring: np.ndarray
    item_copies: np.ndarray
    item_issue: np.ndarray
    item_retire: np.ndarray
    item_cause: np.ndarray
    copy_ring: np.ndarray
    copy_index: np.ndarray
    copy_bytes: np.ndarray
    copy_line_text: np.ndarray
    copy_shape_text: np.ndarray
    copy_signal: np.ndarray
    copy_item: np.ndarray
    copy_begin: np.ndarray
    copy_end: np.ndarray
    tile_text: np.ndarray
    tile_space: np.ndarray
    tile_bytes: np.ndarray
    tile_partitions: np.ndarray
    access_tile: np.ndarray
    access_writes: np.ndarray
    access_item: np.ndarray
    access_copy: np.ndarray

    def text(self, number: int) -> str:
        """One of `texts`."""
        return str(self.texts[number])

    def items_of(self, queue: int) -> np.ndarray:
        """Numbers of the items of a queue, in its order."""
        return np.flatnonzero(self.item_queue == queue)


_NUMBERS = ("format", "cycles", "coarse_from", "lost", "cores_from", "cores_recorded")


def save_trace(recorded: Recorded, folder: Path) -> Path:
    """`folder`/trace.npz, whole or not at all. Errors: PlexusError if it cannot be written."""
    save_columns(folder / FILE, {field.name: getattr(recorded, field.name) for field in fields(recorded)})
    return folder / FILE


def load_trace(folder: Path) -> Recorded:
    """The trace beside a report. Errors: PlexusError if there is none, or it is torn or of another format."""
    names = [field.name for field in fields(Recorded)]
    why_not = "the run was made with --no-trace, or by an older version"
    values: dict[str, Any] = dict(load_columns(folder / FILE, FORMAT, names, why_not))
    values |= {name: int(values[name]) for name in _NUMBERS}
    return Recorded(**values)
