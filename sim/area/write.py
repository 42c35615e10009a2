"""The files of an area: plain values, a page, a picture; each whole or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.area.picture import svg_of
from sim.errors import PlexusError
from sim.page.embed import page_text
from sim.run.variant import described
from sim.whole_file import whole_file

__all__ = ["write_area"]


def _page(report: Mapping[str, Any], picture: str) -> str:
    total, deep = report["total"], report["total"]["too_deep"]
    config = described(report["config"], report["config_base"], report["config_changes"], None)
    told = f"{deep} of {len(report['units'])} units have more levels than their clock holds"
    data = {
        "title": f"area of {report['top']} at {config}",
        "verdict": f"{total['area_ge']:,.0f} gate equivalents, {total['flip_flops']:,} flip-flops, "
        f"{total['ram_bits']:,} bits of RAM",
        "good": True,
        "note": f"{told if deep else 'every unit has as few levels as its clock needs'}, at {report['level_ps']:g} ps "
        "a level; a NAND of two inputs is 1; no wires, no power",
        "report": dict(report),
        "picture": picture,
    }
    return page_text(data, "area")


def write_area(report: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """area.json, area.html and area.svg in `folder`, by what they are. Errors: PlexusError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlexusError(f"nothing can be written in the folder {folder}: {error.strerror}") from None
    picture = svg_of(report)
    texts = {"report": json.dumps(report, indent=1) + "\n", "page": _page(report, picture), "picture": picture}
    paths = {"report": folder / "area.json", "page": folder / "area.html", "picture": folder / "area.svg"}
    for what, text in texts.items():
        with whole_file(paths[what]) as place:
            place.write_text(text, encoding="utf-8")
    return paths
