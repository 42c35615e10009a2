"""An area as a picture: SVG, parts of the top as rectangles of units in proportion to their gate equivalents."""

import html
from collections.abc import Mapping
from typing import Any

from sim.area.treemap import Box, squarified

__all__ = ["svg_of"]

_WIDTH, _HEIGHT, _HEAD = 1000.0, 560.0, 16.0
_LETTER = 6.1  # a letter of 11 px, about
_FONT = 'font-family="system-ui, sans-serif" font-size="11"'
_HUES = (205, 140, 20, 275, 45, 325, 85, 190, 250, 0)


def _text(x: float, y: float, words: str, room: float, style: str = "") -> str:
    """Words that fit into the room, cut if need be; nothing if only a few letters would."""
    letters = int(room / _LETTER)
    if letters < min(4, len(words)):
        return ""
    told = words if len(words) <= letters else f"{words[: letters - 1]}\u2026"
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{html.escape(told)}</text>'


def _unit(row: Mapping[str, Any], area: float, count: int, box: Box, hue: int, light: int) -> str:
    about = (
        f"{row['name']}: {count:,} x {row['area_ge']:,.0f} = {area:,.0f} GE; {row['flip_flops'] * count:,} flip-flops"
    )
    about += f"; {row['levels']} levels of {row['levels_allowed']}"
    edge = ' class="deep"' if row["too_deep"] else ""
    room = box.width - 6
    words = row["name"].rsplit(".", 1)[-1] + (f" x {count:,}" if count > 1 else "")
    label = _text(box.x + 3, box.y + 12, words, room) if box.height > 14 else ""
    more = _text(box.x + 3, box.y + 25, f"{area:,.0f}", room) if label and box.height > 28 else ""
    rect = f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    return f'<g><title>{html.escape(about)}</title>{rect} fill="hsl({hue} 45% {light}%)"{edge}/>{label}{more}</g>'


def svg_of(report: Mapping[str, Any]) -> str:
    """Of a report of sim.area.area. Units that are too deep for their clock have a red edge."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" {_FONT} role="img">',
        f"<title>Area of {html.escape(report['top'])} at {html.escape(report['config'])} by unit</title>",
        "<style>rect{stroke:#fff;stroke-width:1}rect.deep{stroke:#c22;stroke-width:2}text{fill:#14171b}</style>",
        f'<rect width="{_WIDTH:.0f}" height="{_HEIGHT:.0f}" fill="#fff"/>',
    ]
    branches = [branch for branch in report["branches"] if branch["area_ge"] > 0]
    whole = report["total"]["area_ge"]
    boxes = squarified([branch["area_ge"] for branch in branches], Box(0, 0, _WIDTH, _HEIGHT))
    for n, (branch, box) in enumerate(zip(branches, boxes, strict=True)):
        hue, name = _HUES[n % len(_HUES)], branch["name"]
        held = [(row["area_ge"] * row["branches"].get(name, 0), row) for row in report["units"]]
        rows = sorted((item for item in held if item[0] > 0), key=lambda item: -item[0])
        title = f"{name}, {100 * branch['area_ge'] / whole:.1f} %"
        parts.append(f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" ')
        parts[-1] += f'fill="hsl({hue} 45% 84%)"/>'
        parts.append(_text(box.x + 4, box.y + 13, title, box.width - 8, ' font-weight="600"'))
        inner = squarified([area for area, _ in rows], box.inside(1.0, _HEAD if box.height > 2 * _HEAD else 0.0))
        for k, ((area, row), place) in enumerate(zip(rows, inner, strict=True)):
            parts.append(_unit(row, area, row["branches"][name], place, hue, 66 + 6 * (k % 3)))
    return "\n".join([*filter(None, parts), "</svg>", ""])
