"""Runs inside a simulator, before cocotb: pays once for what every run of a bench needs, then forks for each run.

A start costs half a second of imports, most runs of a bench a hundredth of that, and one bench has dozens of runs
(seeds, planted faults). The bench is imported here; a child gets seed, fault and folder as cocotb reads them anyway,
from the environment, and goes on as if it had just been started. sim/run/bench_process.py is the other end.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
from math import ceil

from cocotb.regression import RegressionManager

__all__ = ["JOBS_VARIABLE", "serve"]

JOBS_VARIABLE = "PLEXUS_JOBS"
"""File descriptors: a line of JSON comes in for each run, its exit status goes out."""
_GARBAGE_OBJECTS = 50_000
"""Between two looks for garbage; Python's own 700 cost a bench 3 % of its time."""


def serve() -> None:
    """Returns in a child, once for each job; the process itself ends here when nobody is left who could ask."""
    jobs, answers = map(int, os.environ[JOBS_VARIABLE].split(","))
    gc.disable()  # what is imported stays
    RegressionManager.setup_pytest_assertion_rewriting()  # before the import, and 0.1 s
    with contextlib.suppress(Exception):  # the run meets it again, and its log says so
        for module in os.environ["COCOTB_TEST_MODULES"].split(","):
            importlib.import_module(module)
    gc.freeze()
    waiting = b""
    while True:
        while b"\n" not in waiting:
            more = os.read(jobs, 65536)
            if not more:
                os._exit(0)
            waiting += more
        line, waiting = waiting.split(b"\n", 1)
        ctypes.CDLL(None).fflush(None)  # or each child writes what C has not written yet
        ended, held = os.pipe()
        child = os.fork()
        if child == 0:
            for end in (jobs, answers, ended):
                os.close(end)
            _become(json.loads(line))
            gc.set_threshold(_GARBAGE_OBJECTS)
            gc.enable()
            return
        os.close(held)  # the child has the only other one, so that `ended` is ready when it is gone
        ready, _, _ = select.select([ended, jobs], [], [])
        if ended not in ready:  # nobody waits for the answer
            os.kill(child, signal.SIGKILL)
        os.close(ended)
        _, status = os.waitpid(child, 0)
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(job: dict) -> None:
    """Take folder, log and environment of a run."""
    os.chdir(job["folder"])
    if job["cpu_seconds"] is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (ceil(job["cpu_seconds"]), resource.RLIM_INFINITY))
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.environ["COCOTB_REWRITE_ASSERTION_FILES"] = ""  # done above
