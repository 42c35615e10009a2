"""A simulator with a bench in it that stands ready: every run is a fork of it (sim/run/bench_inside.py).

The processes kept are this Python's own; they end with it, however it ends, since each reads from a pipe that only
this Python writes to.
"""

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

import cocotb_tools.config
from find_libpython import find_libpython

from sim.errors import PlexusError
from sim.run.bench_inside import JOBS_VARIABLE
from sim.toolchain import ROOT

__all__ = ["BenchProcess", "bench_process"]

_KEPT = 2
"""Processes that stand ready: tests go from one bench to the next, and a core's model takes 0.3 GB."""
_PATIENCE_SECONDS = 10
_ENTRY_POINTS = (
    "sim.run.bench_inside:serve",
    "cocotb.logging:_configure",
    "cocotb._init:init_package_from_simulation",
    "cocotb.regression:_run_regression",
)
"""Ours, then cocotb's own (pygpi.entry.load_entry)."""
_NOT_OURS = ("PYTEST_CURRENT_TEST", "MAKEFLAGS", "MAKELEVEL", "COCOTB_TEST_FILTER", "COCOTB_TESTCASE")


class BenchProcess:
    """A started simulator. `arguments`: of its program. `environment`: what the bench may read at import."""

    def __init__(self, binary: Path, bench: str, arguments: Sequence[str], environment: Mapping[str, str]):
        libpython = find_libpython()
        if libpython is None:
            raise PlexusError("cocotb needs Python's shared library and this Python has none: install libpython3-dev")
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in _NOT_OURS},
            "COCOTB_ANSI_OUTPUT": "0",
            "COCOTB_TEST_MODULES": bench,
            "COCOTB_TOPLEVEL": "top",
            "GPI_USERS": f"{libpython};{cocotb_tools.config.pygpi_entry_point()}",
            "OPENBLAS_NUM_THREADS": "1",  # threads do not survive a fork, and tests run side by side
            "PYGPI_PYTHON_BIN": sys.executable,
            "PYGPI_USERS": ",".join(_ENTRY_POINTS),
            "PYTHONPATH": os.pathsep.join([str(ROOT), *(p for p in sys.path if p)]),
            "TOPLEVEL_LANG": "verilog",
        }
        jobs, self._jobs = os.pipe()
        self._answers, answers = os.pipe()
        try:
            self._process = subprocess.Popen(
                [str(binary), *arguments],
                env={**self._environment, **environment, JOBS_VARIABLE: f"{jobs},{answers}"},
                pass_fds=(jobs, answers),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        finally:
            os.close(jobs)
            os.close(answers)
        self._owner = os.getpid()

    @property
    def runs(self) -> bool:
        """It can take a job; a fork of this Python cannot ask."""
        return self._owner == os.getpid() and self._process.poll() is None

    def run(self, folder: Path, log: Path, environment: Mapping[str, str], cpu_seconds: float | None = None) -> bool:
        """One run, its words into `log`; whether the simulator ended by itself with code 0.

        Errors: TimeoutError if it took `cpu_seconds` of a processor; it is ended then.
        """
        job = {
            "folder": str(folder),
            "log": str(log),
            "environment": {**self._environment, **environment},
            "cpu_seconds": cpu_seconds,
        }
        try:
            with contextlib.suppress(BrokenPipeError):
                left = memoryview(json.dumps(job).encode() + b"\n")
                while left:
                    left = left[os.write(self._jobs, left) :]
            answer = os.read(self._answers, 64)
        except BaseException:
            self.close()
            raise
        if not answer:  # it has crashed before it could fork
            self.close()
        if answer == b"%d\n" % -signal.SIGXCPU:
            raise TimeoutError
        return answer == b"0\n"

    def close(self) -> None:
        """End it, and the run that it is in."""
        if self._jobs >= 0:
            os.close(self._jobs)
            os.close(self._answers)
            self._jobs = self._answers = -1
        if self._owner != os.getpid():
            return
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_kept: OrderedDict[tuple[Path, str, tuple[str, ...]], BenchProcess] = OrderedDict()


def bench_process(binary: Path, bench: str, arguments: Sequence[str], environment: Mapping[str, str]) -> BenchProcess:
    """The process of this program and bench that stands ready, or a new one instead of the one used longest ago."""
    key = binary, bench, tuple(arguments)
    process = _kept.pop(key, None)
    if process is None or not process.runs:
        while len(_kept) >= _KEPT:
            _kept.popitem(last=False)[1].close()
        process = BenchProcess(binary, bench, arguments, environment)
    _kept[key] = process
    return process


@atexit.register
def _end() -> None:
    while _kept:
        _kept.popitem()[1].close()
