"""Columns that a sweep may ask for beside those of its reports: area of the hardware, energy beside the base's."""

from collections.abc import Mapping, Sequence
from typing import Any

from sim.explore.sweep_error import need

__all__ = ["AREA_COLUMNS", "ENERGY_COLUMNS", "is_base", "wants"]

AREA_COLUMNS = {"area_ge": "area_ge", "area_flip_flops": "flip_flops", "area_ram_bits": "ram_bits"}
"""Columns of the table with the area of a point's hardware, by what they are in the total of `plexus area`."""
ENERGY_COLUMNS = {"energy_index": "typical", "energy_low": "low", "energy_high": "high"}
"""Columns of the table with the energy of a run beside that of the base, by what they are in an Index."""


def wants(table: Mapping[str, Any], what: str, columns: Mapping[str, str], objectives: Sequence[str]) -> bool:
    """Whether a sweep asks for the columns of `what`, by its name or by an objective. Errors: SweepError."""
    asked = [column for column in objectives if column.startswith(f"{what}_")]
    for column in asked:
        need(column in columns, f"there is no {what} {column!r}; there are {', '.join(columns)}")
        need(table.get(what, True), f"{column} is an objective, so {what} cannot be false")
    return table.get(what, bool(asked))


def is_base(changes: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    """Whether a variant changes nothing of the base's fields."""
    return all(field in base and str(base[field]) == str(value) for field, value in changes.items())
