"""What a long piece of work is doing: a moving line on a terminal or in a notebook, one line at the end elsewhere."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status

from sim.notebook_line import NotebookLine

__all__ = ["Progress", "progress"]

_PATIENCE = 2.0  # seconds of silence before anything is shown


def _cpu() -> float:
    """Seconds of the processors that this process and its children that have ended took."""
    return sum(os.times()[:4])


class Progress:
    """Stages of one piece of work. Times of finished stages are in `seconds`; of the processors, our children's too,
    in `cpu_seconds`."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}
        self._cpu_begin = _cpu()
        self._begin = self._stage_begin = time.monotonic()
        self._stage = self._note = ""
        self._console = Console(stderr=True)
        self._live: Status | NotebookLine | None = None
        if self._console.is_jupyter:
            self._live = NotebookLine(title)
        elif self._console.is_terminal:
            self._live = self._console.status(title)
        self._shown = False

    def stage(self, name: str) -> None:
        """The work enters stage `name`."""
        self._end_stage()
        self._stage, self._note = name, ""
        self.tick()

    def note(self, text: str) -> None:
        """How far the stage is, in words."""
        self._note = text
        self.tick()

    def tick(self) -> None:
        """Show what is going on, once it has gone on for long enough. Called while waiting."""
        if self._live is None or time.monotonic() - self._begin < _PATIENCE:
            return
        elapsed = time.monotonic() - self._begin
        told = f"{self._stage}, {self._note}" if self._note else self._stage
        self._live.update(f"{self.title}: {told} ({elapsed:.0f} s)")
        if not self._shown:
            self._live.start()
            self._shown = True

    def end(self) -> None:
        """The current stage is over."""
        self._end_stage()
        self._stage = ""

    def _end_stage(self) -> None:
        now, cpu = time.monotonic(), _cpu()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._stage_begin
            self.cpu_seconds[self._stage] = self.cpu_seconds.get(self._stage, 0.0) + cpu - self._cpu_begin
        self._stage_begin, self._cpu_begin = now, cpu

    def close(self, *, quiet: bool = False) -> None:
        """Work done; says how long each stage took if it was long."""
        self.end()
        if self._live is not None and self._shown:
            self._live.stop()
        total = time.monotonic() - self._begin
        if total >= _PATIENCE and not quiet:
            parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
            print(f"{self.title}: {total:.1f} s ({parts})", file=sys.stderr)


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A Progress that is closed on the way out, silently after an error."""
    p = Progress(title)
    try:
        yield p
    except BaseException:
        p.close(quiet=True)
        raise
    p.close()
