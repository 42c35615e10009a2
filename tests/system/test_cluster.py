"""`plexus explore --cluster`: two workers of Dask on loopback leave the table that this machine leaves."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rtl.contract.config import named
from rtl.contract.roles import needed
from sim.errors import PlexusError
from sim.explore.explore import Explored, explore
from sim.systems.core.verilated import build_core
from sim.toolchain import ROOT

pytestmark = pytest.mark.sim

SWEEP = """
format = 1
base = "tiny"
seeds = [0, 1]
[[axis]]
field = "hbm.latency_ns"
values = [25, 40, 60, 100]
[[variant]]
name = "impossible"
set = {"hbm.bytes_per_cycle" = 5000}
[[workload]]
name = "gemm"
params = {m = 32, k = [32, 64], n = 64}
[[workload]]
name = "layernorm"
params = {rows = 32, columns = 128}
"""


def run(path: Path, folder: Path, **more: Any) -> Explored:
    return explore(path, folder, jobs=2, console=Console(quiet=True), **more)[2]


class Cluster:
    """A scheduler, and workers with a build folder of their own each."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.started: list[subprocess.Popen[bytes]] = []
        self._start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(self.file))
        end = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < end:
            time.sleep(0.1)
        self.address: str = json.loads(self.file.read_text())["address"]

    def _start(self, what: str, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{what}", "--no-dashboard", *arguments]
        with (self.folder / f"{what}.log").open("ab") as log:
            process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, **more})
        self.started.append(process)
        return process

    def worker(self, name: str, **more: str) -> subprocess.Popen[bytes]:
        place = self.folder / name
        arguments = ("--no-nanny", "--nthreads", "1", "--name", name, "--local-directory", str(place / "dask"))
        return self._start("dask_worker", self.address, *arguments, PLEXUS_BUILD=str(place / "build"), **more)

    def close(self) -> None:
        for process in reversed(self.started):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def wait_for(workers: int, address: str) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=60)


def sweeping(folder: Path, cluster: Cluster) -> Callable[[], Mapping[str, int]]:
    """Begin the sweep on the cluster, and come back when it has a row; what is returned waits for its end."""
    found: list[Explored] = []
    thread = threading.Thread(
        target=lambda: found.append(run(folder / "s.toml", folder / "away", cluster=cluster.address))
    )
    thread.start()
    rows = folder / "away" / "rows.jsonl"
    while thread.is_alive() and not (rows.exists() and '"status":"ok"' in rows.read_text()):
        time.sleep(0.05)

    def statuses() -> Mapping[str, int]:
        thread.join()
        return found[0].statuses

    return statuses


def test_two_workers_leave_the_table_of_this_machine(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    model = build_core(needed(named("tiny")))
    found = run(tmp_path / "s.toml", tmp_path / "local")
    assert found.statuses == {"ok": 24, "refused": 6}
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(model.folder, first / "build" / model.top / model.key, copy_function=os.link)
    cluster.worker("first")
    away = sweeping(tmp_path, cluster)
    cluster.worker("second")  # while points run: it has no model
    assert away() == found.statuses
    tables = [(tmp_path / place / "table.csv").read_bytes() for place in ("local", "away")]
    assert tables[0] == tables[1]
    # the model went from one to the other, nobody built a second one
    records = [list((place / "build" / "core").glob("*/built.json")) for place in (first, second)]
    assert [[path.parent.name for path in paths] for paths in records] == [[model.key], [model.key]]
    assert records[0][0].read_bytes() == records[1][0].read_bytes()
    # reports came back
    reports = [
        sorted(p.parent.name for p in (tmp_path / place).glob("runs/*/report.json")) for place in ("local", "away")
    ]
    assert reports[0] == reports[1] and len(reports[0]) == 24


def test_a_worker_that_dies_costs_no_row(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    model = build_core(needed(named("tiny")))
    for name in ("first", "second"):
        shutil.copytree(model.folder, tmp_path / name / "build" / model.top / model.key, copy_function=os.link)
    cluster.worker("first")
    dies = cluster.worker("second")
    wait_for(2, cluster.address)
    away = sweeping(tmp_path, cluster)
    dies.kill()
    assert away() == {"ok": 24, "refused": 6}


def test_who_is_unlike_or_not_there_is_named(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    with pytest.raises(PlexusError, match="has no worker"):
        run(tmp_path / "s.toml", tmp_path / "away", cluster=cluster.address)
    cluster.worker("other", PLEXUS_PORTABLE="1")
    wait_for(1, cluster.address)
    with pytest.raises(PlexusError, match=r"worker tcp://127\.0\.0\.1:\d+ has other processor than this machine: any"):
        run(tmp_path / "s.toml", tmp_path / "away", cluster=cluster.address)
    with pytest.raises(PlexusError, match="no scheduler of Dask answers at nobody:1"):
        run(tmp_path / "s.toml", tmp_path / "away", cluster="nobody:1")
