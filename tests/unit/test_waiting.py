"""What somebody who waits sees: nothing for a while, then one line, on a terminal or in a notebook."""

import io
import sys
import time
import types
from typing import Any

import pytest
from rich.console import Console

import sim.api.waiting
import sim.progress
from sim.api.waiting import WAITING, line


class Page:
    """IPython.display, as far as a line needs it: what a cell shows."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def HTML(self, text: str) -> str:
        return text

    def display(self, page: str, display_id: bool) -> "Page":
        assert display_id
        self.shown.append(page)
        return self

    def update(self, page: str) -> None:
        self.shown.append(page)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Page:
    page = Page()
    module: Any = types.ModuleType("IPython.display")
    module.HTML, module.display = page.HTML, page.display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    for place in (sim.api.waiting, sim.progress):
        monkeypatch.setattr(place, "Console", lambda **options: Console(file=io.StringIO(), force_jupyter=True))
    return page


def test_a_line_in_a_notebook(notebook: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    with line("quick") as update:
        update("still quick")
    assert notebook.shown == []
    monkeypatch.setattr(sim.api.waiting, "PATIENCE_SECONDS", 0.01)
    with WAITING.bar("simulate <x>", 5000) as watch:
        time.sleep(0.1)
        watch(1234)
    assert notebook.shown[0] == "<pre>simulate &lt;x&gt;</pre>"
    assert notebook.shown[1].startswith("<pre>simulate &lt;x&gt;: 1,234 of at least 5,000 cycles")
    assert notebook.shown[-1] == "" and len(notebook.shown) == 3


def test_a_build_in_a_notebook(notebook: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim.progress, "_PATIENCE", 0.0)
    with sim.progress.progress("build core") as p:
        p.stage("compile")
    assert any("build core: compile" in text for text in notebook.shown) and notebook.shown[-1] == ""


def test_a_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, force_jupyter=False, width=60)
    monkeypatch.setattr(sim.api.waiting, "Console", lambda **options: console)
    monkeypatch.setattr(sim.api.waiting, "PATIENCE_SECONDS", 0.01)
    with line("golden machine"):
        time.sleep(0.2)
    assert "golden machine" in screen.getvalue()


def test_no_line_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sim.api.waiting, "Console", lambda **options: Console(file=screen))
    with WAITING.stage("golden machine") as update:
        update("more")
    assert screen.getvalue() == ""
