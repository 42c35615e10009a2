"""Progress over the cycles of a simulation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

__all__ = ["cycles_bar"]


class _Rate(ProgressColumn):
    """Cycles a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} cycles/s" if task.speed else "")


@contextmanager
def cycles_bar(console: Console, title: str, expected: int) -> Iterator[Callable[[int], None]]:
    """A bar, where somebody can see it, that is told the cycle; `expected` is a bound, so it may grow."""
    if not console.is_terminal:
        yield lambda cycle: None
        return
    with Progress(
        TextColumn(title),
        BarColumn(),
        TextColumn("{task.completed:,.0f} cycles"),
        _Rate(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task(title, total=max(1, expected))
        yield lambda cycle: bar.update(task, completed=cycle, total=max(expected, cycle))
