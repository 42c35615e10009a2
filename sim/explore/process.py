"""A process that runs points, begun anew when it ends or takes too long."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from sim.toolchain import ROOT

__all__ = ["Worker"]

_COMMAND = (sys.executable, "-m", "sim.explore.worker")
_GRACE_SECONDS = 5.0


class Worker:
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
