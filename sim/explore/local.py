"""Points on the processors of this machine: a process a worker, which is begun anew when it ends or takes too long.

While a model is built for a group, one worker has that group; the others take points whose model is there.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim.explore.plan import Group, Plan, task_of
from sim.explore.points import Point
from sim.toolchain import ROOT

__all__ = ["run_locally"]

_COMMAND = (sys.executable, "-m", "sim.explore.worker")
_GRACE_SECONDS = 5.0


class _Worker:
    """A process that runs one task at a time."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def _begin(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        with self.log.open("ab") as log:
            return subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # what a terminal's Ctrl-C ends is our own doing
            )

    def run(self, task: dict[str, Any], timeout_seconds: float | None) -> dict[str, Any]:
        """The outcome; of a process that ended without one, "crashed", of one that took too long, "timeout"."""
        if self.process is None or self.process.poll() is not None:
            self.process = self._begin()
        assert self.process.stdin is not None and self.process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(timeout_seconds, end) if timeout_seconds else None
        try:
            if timer:
                timer.start()
            self.process.stdin.write(json.dumps(task).encode() + b"\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            if line.endswith(b"\n"):
                return json.loads(line)
        except (OSError, ValueError):
            pass
        finally:
            if timer:
                timer.cancel()
        self.kill()
        if late.is_set():
            return {"status": "timeout", "sentence": f"it took more than {timeout_seconds:g} seconds"}
        code = self.process.wait() if self.process else 0
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return {"status": "crashed", "sentence": f"its process ended with {how}; {self.log.name} has what it said"}

    def kill(self) -> None:
        """End the process and all that it has begun."""
        if self.process is not None and self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()

    def close(self) -> None:
        """Let it end by itself."""
        if self.process is not None and self.process.poll() is None and self.process.stdin is not None:
            self.process.stdin.close()
            try:
                self.process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()


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
    workers = [_Worker(folder / "workers.log") for _ in range(max(1, jobs))]

    def work(worker: _Worker) -> None:
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
