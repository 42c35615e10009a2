"""A line in a notebook's cell that changes while one waits, with the interface of a status of rich, whose own needs
widgets there."""

import html
import importlib
from typing import Any

__all__ = ["NotebookLine"]


class NotebookLine:
    """Shown from `start` to `stop`; then the cell forgets it."""

    def __init__(self, text: str):
        self._text = text
        self._handle: Any = None

    def _shown(self) -> Any:
        page = importlib.import_module("IPython.display")
        return page.HTML(f"<pre>{html.escape(self._text)}</pre>" if self._text else "")

    def start(self) -> None:
        """Show it."""
        self._handle = importlib.import_module("IPython.display").display(self._shown(), display_id=True)

    def update(self, text: str) -> None:
        """Another text."""
        self._text = text
        if self._handle is not None:
            self._handle.update(self._shown())

    def stop(self) -> None:
        """Take it away."""
        self.update("")
        self._handle = None
