"""Progress for somebody who has called a function: nothing for two seconds, then a line that says what is going on."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from sim.notebook_line import NotebookLine
from sim.systems.core.run import Shown

__all__ = ["PATIENCE_SECONDS", "WAITING", "line"]

PATIENCE_SECONDS = 2.0
"""Of silence before anything is shown."""


@contextmanager
def line(text: str) -> Iterator[Callable[[str], None]]:
    """A line on a terminal or in a notebook, once it has lasted; takes texts that replace it."""
    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield lambda text: None
        return
    shown = NotebookLine(text) if console.is_jupyter else console.status(text)
    timer = threading.Timer(PATIENCE_SECONDS, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield shown.update
    finally:
        timer.cancel()
        timer.join()
        shown.stop()


@contextmanager
def _bar(title: str, expected_cycles: int) -> Iterator[Callable[[int], None]]:
    begin = time.monotonic()
    with line(title) as update:

        def watch(cycle: int) -> None:
            rate = cycle / max(time.monotonic() - begin, 1e-3)
            update(f"{title}: {cycle:,} of at least {expected_cycles:,} cycles, {rate:,.0f} cycles/s")

        yield watch


WAITING = Shown(stage=line, bar=_bar)
"""How calls from Python tell that they last."""
