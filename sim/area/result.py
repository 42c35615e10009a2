"""What Yosys made of one unit."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sim.area.cells import AREA_GE, LOGIC
from sim.area.levels import longest_path

__all__ = ["Mapped", "mapped_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """One instance, without RAM macros, delay lines, clock gates and units inside. `cells`: numbers of the ten."""

    cells: Mapping[str, int]
    levels: int
    begin: str
    end: str

    @property
    def area_ge(self) -> float:
        """Gate equivalents."""
        return sum(AREA_GE[name] * number for name, number in self.cells.items())

    @property
    def flip_flops(self) -> int:
        """Bits of registers."""
        return self.cells.get("DFF", 0)

    def as_dict(self) -> dict[str, Any]:
        """For a cache."""
        return asdict(self)


def mapped_of(text: str, top: str) -> Mapped:
    """From Yosys's JSON. Errors: ValueError if a cell is none of ours."""
    module = json.loads(text)["modules"][top]
    cells = Counter[str]()
    for cell in module["cells"].values():
        kind = cell["type"]
        if kind in LOGIC:
            cells[kind] += 1
        elif kind == "$_DFF_P_":
            cells["DFF"] += 1
        elif kind.startswith("$") and kind not in ("$mem_v2", "$scopeinfo"):
            raise ValueError(f"{top} has a cell {kind} that no gate was found for")
    path = longest_path(module)
    return Mapped(cells=dict(sorted(cells.items())), levels=path.levels, begin=path.begin, end=path.end)
