"""A page of one file: its frame, style and scripts from beside this file, its data packed into it."""

import base64
import gzip
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["page_text"]

_HERE = Path(__file__).resolve().parent


def page_text(data: Mapping[str, Any], name: str) -> str:
    """frame.html around `name`.html, with `name`.js; `data` has the title."""
    packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 9, mtime=0)
    page = (_HERE / "frame.html").read_text(encoding="utf-8")
    for mark, text in (
        ("BODY", (_HERE / f"{name}.html").read_text(encoding="utf-8")),
        ("TITLE", html.escape(data["title"])),
        ("STYLE", (_HERE / "page.css").read_text(encoding="utf-8")),
        ("COMMON", (_HERE / "common.js").read_text(encoding="utf-8")),
        ("SCRIPT", (_HERE / f"{name}.js").read_text(encoding="utf-8")),
        ("DATA", base64.b64encode(packed).decode()),
    ):
        page = page.replace(f"@{mark}@", text)
    return page
