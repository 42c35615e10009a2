"""The notebook's cells run, and show what it says they do; cycles and seconds may be others."""

import json
import re
from typing import Any

import pytest

from sim.figures.notebook import NOTEBOOK, main, shown

pytestmark = pytest.mark.sim

CYCLES = re.compile(r"[\d,]+ cycles")
TAGS = re.compile(r"<[^>]*>")


def said(outputs: list[dict[str, Any]]) -> list[str]:
    """Text of a cell's outputs without cycles; of HTML what begins its lines."""
    found: list[str] = []
    for output in outputs:
        data = output.get("data", {})
        if "text/html" in data:
            lines = TAGS.sub("", "".join(data["text/html"])).splitlines()
            found += [line.split()[0] for line in lines if line[:1].strip()]
        else:
            text = "".join(output.get("text", data.get("text/plain")))
            found.append(re.sub(" +", " ", CYCLES.sub("N cycles", text)))
    return found


def test_cells_show_what_the_notebook_says() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    ran = list(shown(cells))
    assert len(ran) == sum(cell["cell_type"] == "code" for cell in cells) >= 5
    for index, outputs in ran:
        assert said(outputs) == said(cells[index]["outputs"]), "".join(cells[index]["source"])
    assert any("MATCH" in line for _, outputs in ran for line in said(outputs))


def test_it_is_written_anew(tmp_path: Any) -> None:
    page = tmp_path / "page.ipynb"
    source = ["print(1)\n", "{'a': 2}"]
    page.write_text(json.dumps({"cells": [{"cell_type": "code", "source": source}, {"cell_type": "markdown"}]}))
    assert main(page) == 0
    cell = json.loads(page.read_text())["cells"][0]
    assert cell["execution_count"] == 1 and said(cell["outputs"]) == ["1\n", "{'a': 2}"]
