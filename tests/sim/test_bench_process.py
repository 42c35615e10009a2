"""A simulator that stands ready for many runs of a bench: they share nothing but its start, and nothing outlives us."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rtl.contract.config import named
from sim.build import build
from sim.run import bench_process
from sim.run.runner import BenchError, run_bench
from sim.toolchain import ROOT

pytestmark = pytest.mark.sim


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """These ask for runs, not for verdicts, nor for coverage."""
    monkeypatch.setenv("FRESH", "1")
    monkeypatch.delenv("PLEXUS_COVERAGE", raising=False)


BENCH = "verif.benches.base.bench_fifo"
SHAPE = {"shape": 16, "depth": 4}
SLOW = """
import os
import cocotb
from cocotb.triggers import Timer

@cocotb.test()
async def never_ends(dut):
    print("parent", os.getppid(), "run", os.getpid(), flush=True)
    while True:
        await Timer(1, "us")
"""
STARTS = """
import sys
from rtl.contract.config import named
from sim.run.runner import run_bench

run_bench("fifo", "slow_bench", named("tiny"), planted=True, options={"shape": 16, "depth": 4})
"""


def test_runs_of_a_bench_share_a_process_and_no_state() -> None:
    first = run_bench("fifo", BENCH, named("tiny"), seed=1, planted=True, options=SHAPE)
    kept = dict(bench_process._kept)
    faulty = run_bench("fifo", BENCH, named("tiny"), seed=1, plant="a FIFO takes an entry when full", options=SHAPE)
    again = run_bench("fifo", BENCH, named("tiny"), seed=1, planted=True, options=SHAPE)
    assert bench_process._kept == kept, "each run has started a simulator"
    assert first.ok and again.ok and not faulty.ok
    assert [c.name for c in first.cases] == [c.name for c in again.cases]


def test_processes_kept_are_few() -> None:
    built = build("fifo", named("tiny"), planted=True, options=SHAPE)
    for n in range(4):
        bench_process.bench_process(built.binary, f"verif.benches.none_{n}", [], {})
    assert len(bench_process._kept) == bench_process._KEPT


def test_a_process_that_was_killed_is_started_again() -> None:
    run_bench("fifo", BENCH, named("tiny"), planted=True, options=SHAPE).require()
    next(reversed(bench_process._kept.values()))._process.kill()
    time.sleep(0.1)
    run_bench("fifo", BENCH, named("tiny"), planted=True, options=SHAPE).require()


def test_a_simulator_that_crashes_gives_no_verdict_and_the_next_run_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = SLOW.replace("await Timer", "os.kill(os.getpid(), 9); await Timer")
    (tmp_path / "crashing_bench.py").write_text(crash)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BenchError, match="ended without a verdict"):
        run_bench("fifo", "crashing_bench", named("tiny"), planted=True, options=SHAPE)
    run_bench("fifo", BENCH, named("tiny"), planted=True, options=SHAPE).require()


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_run_ends_with_who_started_it(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "slow_bench.py").write_text(SLOW)
    built = build("fifo", named("tiny"), planted=True, options=SHAPE)
    log = built.folder / "run-slow_bench-s1-p0" / "run.log"
    log.unlink(missing_ok=True)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    started = subprocess.Popen(
        [sys.executable, "-c", STARTS],
        env=environment,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell's job may ignore it
    )
    words: list[str] = []
    while not words and started.poll() is None:
        time.sleep(0.05)
        words = [line for line in (log.read_text() if log.exists() else "").splitlines() if line.startswith("parent")]
    assert words, started.stderr.read().decode()[-2000:]
    _, parent, _, run = words[0].split()
    started.send_signal(number)
    assert started.wait(60) != 0
    for _ in range(1200):  # a minute, on a machine with other work
        if _gone(int(parent)) and _gone(int(run)):
            return
        time.sleep(0.05)
    raise AssertionError("the simulator runs on")
