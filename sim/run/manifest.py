"""What a build or a run was made for, as a file: written before the simulator starts, read inside it."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim.systems.configurations import restored

__all__ = ["MANIFEST_VARIABLE", "Manifest"]

MANIFEST_VARIABLE = "PLEXUS_MANIFEST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A run of one bench on one build. `plant`: the name of the planted fault, and what the input of that name of the
    top is for it."""

    top: str
    config: Any  # of the system that the unit is a part of
    options: dict[str, Any] = field(default_factory=dict)
    plant: str = ""
    plant_number: int = 0
    planted: bool = False
    seed: int = 1
    folder: Path  # of the run: logs, results, coverage go there

    def write(self, path: Path) -> None:
        """Save as JSON."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values["config"] = self.config.as_dict()
        values["folder"] = str(self.folder)
        path.write_text(json.dumps(values, indent=1))

    @staticmethod
    def read(path: Path) -> "Manifest":
        """Load what `write` saved."""
        values = json.loads(path.read_text())
        values["config"] = restored(values["config"])
        values["folder"] = Path(values["folder"])
        return Manifest(**values)
