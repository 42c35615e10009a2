"""Stated figures that bring toggles, words of SRAM, bits of HBM and of wires to one scale: a file, which a user may
change."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rtl.contract.toml_file import toml_table
from sim.errors import PlexusError

__all__ = ["FIGURES", "LEVELS", "Figures", "read_figures"]

FIGURES = Path(__file__).with_suffix(".toml")
LEVELS = ("low", "typical", "high")
_KEYS = {
    "anchor": ("fp32_add_pj", "fp32_multiply_pj"),
    "sram": ("fixed_pj", "root_pj", "low", "high"),
    "clock": ("low", "typical", "high"),
    "hbm": ("low", "typical", "high"),
    "wire": ("low", "typical", "high"),
}


@dataclass(frozen=True, slots=True)
class Figures:
    """As the file has them: section, key, value; `source` of each section is a text."""

    values: Mapping[str, Mapping[str, Any]]

    def pj_a_toggle(self, add: float, multiply: float, level: str) -> float:
        """Of a gate equivalent that switches; `add`, `multiply`: weighted toggles of ours. The two operations give two
        answers: low and high, and their geometric mean."""
        anchor = self.values["anchor"]
        found = sorted((anchor["fp32_add_pj"] / add, anchor["fp32_multiply_pj"] / multiply))
        return {"low": found[0], "typical": math.sqrt(found[0] * found[1]), "high": found[1]}[level]

    def sram_pj(self, bits: int, macro_bytes: float, level: str) -> float:
        """Of a row of so many bits, read or written, in a macro of so many bytes."""
        sram = self.values["sram"]
        return bits / 64 * (sram["fixed_pj"] + sram["root_pj"] * math.sqrt(macro_bytes)) * sram.get(level, 1.0)

    def clocked(self, level: str) -> float:
        """Share of the flip-flops of a running clock that see it."""
        return self.values["clock"][level]

    def bit_pj(self, what: str, level: str) -> float:
        """Of a bit of hbm, or of a wire."""
        return self.values[what][level]


def read_figures(path: Path = FIGURES) -> Figures:
    """Errors: PlexusError and ConfigError, one sentence: no TOML; a section, a key or a positive number is missing."""
    table = toml_table(path, "table of figures")
    for section, keys in _KEYS.items():
        found = table.get(section)
        if not isinstance(found, dict):
            raise PlexusError(f"{path} has no section [{section}]; there must be {', '.join(_KEYS)}")
        about = cast("dict[str, Any]", found)
        for key in keys:
            value = about.get(key)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise PlexusError(f"{key} of [{section}] in {path} must be a number above 0, not {value!r}")
        for key in about:
            if key not in (*keys, "source"):
                raise PlexusError(f"[{section}] in {path} has {key!r}, which is nothing; there are {', '.join(keys)}")
        if "low" in keys and not about["low"] <= about.get("typical", 1.0) <= about["high"]:
            raise PlexusError(f"low, typical and high of [{section}] in {path} must ascend")
    return Figures(table)
