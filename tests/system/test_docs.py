"""The Python examples of pages run, and print what the pages say; cycles may be others."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import plexus
from sim.toolchain import ROOT

pytestmark = pytest.mark.sim

BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.M | re.S)
CYCLES = re.compile(r"[\d,]+ cycles")


def examples(page: Path, count: int | None = None) -> list[tuple[str, str]]:
    """Code, and what it must print: the block of text behind it, if there is one."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    found = [
        (code, blocks[i + 1][1] if i + 1 < len(blocks) and blocks[i + 1][0] == "text" else "")
        for i, (kind, code) in enumerate(blocks)
        if kind == "python"
    ]
    return found[:count]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("README.md", None),
        ("docs/api.md", None),
        ("docs/nki.md", None),
        ("docs/kernels.md", 4),
    ],  # the others of kernels.md are parts
)
def test_examples_print_what_the_page_says(name: str, count: int | None) -> None:
    found = examples(ROOT / name, count)
    assert found
    names: dict[str, Any] = {"__name__": "example"}
    for number, (code, says) in enumerate(found):
        place = f"{name}, example {number}"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, place, "exec"), names)
        assert CYCLES.sub("N cycles", out.getvalue()) == CYCLES.sub("N cycles", says), f"{place}:\n{out.getvalue()}"


def test_the_page_names_what_there_is() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    missing = [name for name in plexus.__all__ if not re.search(rf"plexus\.{name}\b|`{name}[`(]", page)]
    assert not missing, f"docs/api.md does not have {', '.join(missing)}"
