"""`plexus explore` on the RTL: rows, tables and pages that no interrupt, crash or second beginning changes."""

import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rtl.contract.config import named
from rtl.contract.roles import needed
from sim.errors import PlexusError
from sim.explore.explore import Explored, explore
from sim.explore.made_of import made_of
from sim.explore.rows import Rows
from sim.page.browser import Browser
from sim.systems.core.verilated import build_core
from sim.toolchain import ROOT

pytestmark = pytest.mark.sim

SWEEP = """
format = 1
base = "tiny"
seeds = [0, 1]
objectives = ["cycles:min", "hbm_utilization:max"]
[[axis]]
field = "hbm.latency_ns"
values = [25, 100, 400]
[[axis]]
field = "sbuf.partition_bytes"
values = [4096, 8192]
[[variant]]
name = "impossible"
set = {"hbm.bytes_per_cycle" = 5000}
[[variant]]
name = "few-rings"
set = {"dma.rings" = 1}
[[workload]]
name = "gemm"
params = {m = 32, k = [32, 64], n = 64}
[[workload]]
name = "layernorm"
params = {rows = 32, columns = 512}
"""
POINTS = 8 * 3 * 2
INTERRUPTED = """
import runpy
import signal

# A job that a shell put in the background ignores interrupts, and its children do: a person's does not.
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("sim.explore", run_name="__main__")
"""


def run(path: Path, folder: Path, **more: Any) -> Explored:
    return explore(path, folder, jobs=2, console=Console(quiet=True), **more)[2]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Explored]:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "s.toml").write_text(SWEEP)
    return folder / "s.toml", folder / "out", run(folder / "s.toml", folder / "out")


def test_a_sweep_has_a_row_for_every_point(swept: tuple[Path, Path, Explored]) -> None:
    path, folder, found = swept
    assert found.points == found.ran == POINTS and found.models == 1
    assert found.statuses == {"does_not_fit": 14, "ok": 28, "refused": 6}
    lines = (folder / "table.csv").read_text().splitlines()
    assert len(lines) == 1 + found.points
    rows = Rows(folder, made_of()).found.values()
    refused = next(row for row in rows if row["status"] == "refused")
    assert refused["sentence"] == "hbm.bytes_per_cycle must be from 1 to 1024, not 5000"
    good = next(row for row in rows if row["status"] == "ok")
    assert good["report"]["match"] is True and good["command"].startswith("plexus run gemm --config tiny --set ")
    assert {"commit", "tools", "seconds", "cpu_seconds", "made_of"} <= good.keys()
    parts = {f"cpu_parts.{part}" for part in ("program", "build", "run", "check", "report")}
    assert parts <= good["report"].keys() and not any("cpu" in name for name in lines[0].split(","))
    golden = [row["report"]["golden"] for row in rows if row["status"] == "ok"]
    assert golden.count("kept") >= len(golden) // 2  # programs of variants that differ in time only are the same


def test_the_same_again_runs_nothing(swept: tuple[Path, Path, Explored]) -> None:
    path, folder, found = swept
    before = (folder / "table.csv").read_bytes()
    again = run(path, folder)
    assert again.ran == 0 and again.kept == found.points and (folder / "table.csv").read_bytes() == before
    retried = run(path, folder, retry=True)
    assert retried.ran == 20 and (folder / "table.csv").read_bytes() == before


def test_killed_at_any_moment_it_goes_on_to_the_same_table(swept: tuple[Path, Path, Explored], tmp_path: Path) -> None:
    path, folder, _ = swept
    command = [sys.executable, "-m", "sim.explore", str(path), "--jobs", "2", "--out", str(tmp_path / "out")]
    rng = random.Random(os.environ.get("PLEXUS_SEEDS", "1"))
    kills = int(os.environ.get("PLEXUS_KILLS", "3"))
    for _ in range(kills):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.5, 4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        rows = tmp_path / "out" / "rows.jsonl"
        if rows.exists():  # whole lines, and at most one that is torn
            for line in rows.read_bytes().split(b"\n")[:-1]:
                json.loads(line)
    run(path, tmp_path / "out")
    assert (tmp_path / "out" / "table.csv").read_bytes() == (folder / "table.csv").read_bytes()


def test_a_worker_that_crashes_loses_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_core(needed(named("tiny")))
    path = tmp_path / "s.toml"
    path.write_text(
        'format = 1\nbase = "tiny"\nseeds = [0, 1, 2, 3]\n[[workload]]\nname = "dma"\nparams = {rows = 8}\n'
    )
    crash = "import os, sim.explore.worker as w\nreal = w.outcome\n"
    crash += "w.outcome = lambda task: os.kill(os.getpid(), 11) if task['seed'] == 2 else real(task)\nw.main()\n"
    monkeypatch.setattr("sim.explore.process._COMMAND", (sys.executable, "-c", crash))
    found = run(path, tmp_path / "out")
    assert found.statuses == {"crashed": 1, "ok": 3}
    monkeypatch.undo()
    assert run(path, tmp_path / "out").ran == 0
    mended = run(path, tmp_path / "out", retry=True)
    assert mended.ran == 1 and mended.statuses == {"ok": 4}


def test_what_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.toml"
    path.write_text('format = 1\nbase = "tiny"\nseeds = [0, 1]\ntimeout_seconds = 2\n[[workload]]\nname = "dma"\n')
    slow = "import time, sim.explore.worker as w\nw.outcome = lambda task: time.sleep(60)\nw.main()\n"
    monkeypatch.setattr("sim.explore.process._COMMAND", (sys.executable, "-c", slow))
    begin = time.monotonic()
    found = run(path, tmp_path / "out")
    assert found.statuses == {"timeout": 2} and time.monotonic() - begin < 30


def test_a_dry_run_writes_nothing(swept: tuple[Path, Path, Explored], tmp_path: Path) -> None:
    found = run(swept[0], tmp_path / "out", dry=True)
    assert found.points == POINTS and found.models == 1 and not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(swept: tuple[Path, Path, Explored], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlexusError, match="nothing can be written in the folder"):
        run(swept[0], tmp_path / "file" / "out")


def test_two_do_not_work_in_one_folder(swept: tuple[Path, Path, Explored], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with (tmp_path / "out" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PlexusError, match="another plexus explore is at work in"):
            run(swept[0], tmp_path / "out")


def test_an_interrupt_leaves_the_table_of_what_there_is(swept: tuple[Path, Path, Explored], tmp_path: Path) -> None:
    words = [str(swept[0]), "--jobs", "2", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    rows = tmp_path / "out" / "rows.jsonl"
    while process.poll() is None and not (rows.exists() and b'"ok"' in rows.read_bytes()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and b"Traceback" not in told
    table = (tmp_path / "out" / "table.csv").read_text().splitlines()
    assert len(table) == 1 + rows.read_bytes().count(b"\n") and (tmp_path / "out" / "index.html").exists()


def test_an_interrupt_while_a_row_is_written_parts_no_row_from_the_table(
    swept: tuple[Path, Path, Explored], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync
    count = iter(range(100))

    def interrupted(file: int) -> None:
        real(file)
        if next(count) == 9:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(swept[0], tmp_path / "out")
    lines = (tmp_path / "out" / "rows.jsonl").read_bytes().splitlines()
    assert len(lines) == 10 and len((tmp_path / "out" / "table.csv").read_text().splitlines()) == 11


def test_a_full_disk_is_a_sentence_and_leaves_whole_rows(
    swept: tuple[Path, Path, Explored], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync
    count = iter(range(100))

    def full(file: int) -> None:
        if next(count) == 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        PlexusError, match=r"rows.jsonl cannot be written: No space left on device; what it has is whole"
    ):
        run(swept[0], tmp_path / "out")
    monkeypatch.undo()
    assert len((tmp_path / "out" / "rows.jsonl").read_bytes().splitlines()) == 9
    run(swept[0], tmp_path / "out")
    assert (tmp_path / "out" / "table.csv").read_bytes() == (swept[1] / "table.csv").read_bytes()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_browser_shows_a_sweep(swept: tuple[Path, Path, Explored], browser: Browser, width: int, dark: bool) -> None:
    browser.heard.clear()
    browser.asked.clear()
    browser.open(swept[1] / "index.html", width=width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("places.length") == 28 and 210 in browser.hues("plot", 14, 296)
    browser.run("$('find').value = 'impossible'; $('find').oninput({target: $('find')})")
    assert browser.run("$('hits').textContent") == "6 found"
    assert browser.run("$('fields').innerText").count("hbm.latency_ns") >= 2
    page = browser.run("document.querySelector('#pareto a').getAttribute('href')")
    assert (swept[1] / page).exists() and not browser.heard and not browser.asked


@pytest.mark.regress
def test_fields_of_a_link_are_axes(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        'format = 1\nbase = "x8"\nobjectives = ["goodput:max"]\n[[axis]]\nfield = "window_flits"\nvalues = [32, 128]\n'
        '[[workload]]\nname = "link"\nparams = {flits = 500, delay = 20}\n'
    )
    found = run(path, tmp_path / "out")
    assert found.statuses == {"ok": 2}
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    goodput = {row["variant"]["window_flits"]: row["report"]["goodput"] for row in rows}
    assert goodput[32] < 0.7 < 0.9 < goodput[128]
