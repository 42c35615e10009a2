"""The energy of a run from the folder of its report, and its index against another one, as plain values."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rtl.contract.any_config import AnyConfig
from rtl.contract.config import load
from sim.energy.energy_of import Assumption, Energy, Index, need_events
from sim.errors import PlexusError
from sim.systems.configurations import configurations

__all__ = ["Finished", "as_values", "finished"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A report, and the configuration that it was of."""

    report: Mapping[str, Any]
    cfg: AnyConfig


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return ":".join(map(str, value))
    return str(value).lower()


def _configuration(report: Mapping[str, Any]) -> AnyConfig:
    for kind in configurations():
        if kind.kind in ("link", "switch") and kind.kind in report:
            return kind.restore(report[kind.kind])
    changed = [f"{key}={_setting(value)}" for key, value in report["config_changes"].items()]
    return load(report["config_base"], changed)


def finished(folder: Path) -> Finished:
    """From `folder`/report.json. Errors: PlexusError if there is none, or none of this version."""
    path = folder / "report.json"
    try:
        report = json.loads(path.read_text())
    except FileNotFoundError:
        raise PlexusError(f"{folder} has no report.json: it is not the folder of a run") from None
    except (OSError, ValueError) as error:
        raise PlexusError(f"{path} cannot be read: {error}") from None
    if not isinstance(report, dict) or not ({"engines", "link", "switch"} & report.keys()) or "config" not in report:
        raise PlexusError(f"{path} is no report of a core, a link or a switch")
    need_events(report)
    try:
        return Finished(report, _configuration(report))
    except (KeyError, TypeError, AttributeError):
        raise PlexusError(f"{path} is not whole: it does not tell its configuration; run it again") from None


def as_values(report: Mapping[str, Any], energy: Energy, index: Index | None) -> dict[str, Any]:
    """`total` and `parts`: gate equivalents that switch, under the typical assumptions; `shares` of each part: low,
    typical, high; `index`, or null."""
    shares = {part: dict(zip(("low", "typical", "high"), of, strict=True)) for part, of in energy.shares().items()}
    return {
        "workload": report["workload"],
        "config": report["config"],
        "config_hash": report["config_hash"],
        "total": energy.total(Assumption()),
        "parts": energy.parts[Assumption()],
        "shares": shares,
        "index": asdict(index) if index else None,
    }
