"""Points on the processors of this machine: a process a worker, which is begun anew when it ends or takes too long.

While a model is built for a group, one worker has that group; the others take points whose model is there.
"""

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim.explore.plan import Group, Plan, task_of
from sim.explore.points import Point
from sim.explore.process import Worker

__all__ = ["run_locally"]


class _Share:
    """Which point is next for whom."""

    def __init__(self, groups: list[Group]):
        self.lock = threading.Condition()
        self.waiting = [(group, list(group.points)) for group in groups if group.points]
        self.building: set[int] = set()
        self.built: set[int] = set()

    def next(self) -> tuple[int, Group, Point] | None:
        """A point whose model is there, else the first one of a group that nobody builds; None when all are given out.
        Waits while all that is left waits for models."""
        with self.lock:
            while True:
                left = [n for n, (_, points) in enumerate(self.waiting) if points]
                if not left:
                    return None
                ready = [n for n in left if n in self.built] or [n for n in left if n not in self.building]
                if ready:
                    group, points = self.waiting[ready[0]]
                    self.building.add(ready[0])
                    return ready[0], group, points.pop(0)
                self.lock.wait()

    def done(self, number: int) -> None:
        """A point of this group has run, so its model is there, or cannot be made."""
        with self.lock:
            self.built.add(number)
            self.lock.notify_all()

    def stop(self) -> None:
        """Give out nothing more."""
        with self.lock:
            for _, points in self.waiting:
                points.clear()
            self.lock.notify_all()


def run_locally(
    plan: Plan,
    folder: Path,
    *,
    jobs: int,
    timeout_seconds: float | None,
    pages: bool,
    fast: bool,
    came: Callable[[Point, dict[str, Any]], None],
) -> None:
    """Run all groups of the plan; `came` is called in this thread with each outcome. What it raises, an interrupt too,
    ends all workers."""
    share, outcomes = _Share(plan.groups), queue.SimpleQueue[tuple[Point, dict[str, Any]] | None]()
    workers = [Worker(folder / "workers.log") for _ in range(max(1, jobs))]

    def work(worker: Worker) -> None:
        while (given := share.next()) is not None:
            number, group, point = given
            begin = time.monotonic()
            found = worker.run(task_of(point, folder, group.model, fast=fast, page=pages), timeout_seconds)
            share.done(number)
            outcomes.put((point, {"seconds": round(time.monotonic() - begin, 3), **found}))
        worker.close()
        outcomes.put(None)

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        ended = 0
        while ended < len(threads):
            try:
                outcome = outcomes.get(timeout=0.2)
            except queue.Empty:
                continue
            if outcome is None:
                ended += 1
            else:
                came(*outcome)
    except BaseException:
        share.stop()
        for worker in workers:
            worker.kill()
        raise
