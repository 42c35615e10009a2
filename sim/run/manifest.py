"""What a build or a run was made for, as a file: written before the simulator starts, read inside it."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtl.contract.config import Config
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig

__all__ = ["MANIFEST_VARIABLE", "Manifest", "config_from"]

MANIFEST_VARIABLE = "PLEXUS_MANIFEST"


def config_from(values: dict[str, Any]) -> Any:
    """The Config, LinkConfig or SwitchConfig whose `as_dict()` this is."""
    parts: dict[str, Any] = {}
    if "ports" in values:
        return SwitchConfig(**(values | {"link": config_from(values["link"])}))
    if "lanes" in values:
        parts = dict(values)
        parts["weights"] = tuple(parts["weights"])
        return LinkConfig(**parts)
    for f in dataclasses.fields(Config):
        value = values[f.name]
        parts[f.name] = f.type(**value) if isinstance(f.type, type) and dataclasses.is_dataclass(f.type) else value
    return Config(**parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A run of one bench on one build. `plant`: the name of the planted fault, and what the input of that name of the
    top is for it."""

    top: str
    config: Any  # Config; LinkConfig for units of rtl/link, SwitchConfig for those of rtl/switch
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
        values["config"] = config_from(values["config"])
        values["folder"] = Path(values["folder"])
        return Manifest(**values)
