"""Points on the workers of a Dask cluster (`--cluster ADDRESS`): the outcomes that this machine would have.

Each worker runs a point in a process and a folder of its own, and sends report and page back. The first point of a
group builds its model, which then goes to whoever runs another one.
"""

import importlib.metadata
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim.build.host import this_host
from sim.build.record import RECORD
from sim.errors import PlexusError
from sim.explore.made_of import made_of
from sim.explore.plan import Group, Plan, task_of
from sim.explore.points import Point
from sim.explore.process import Worker
from sim.toolchain import build_root
from sim.whole_file import whole_file

__all__ = ["describe", "install", "run_on_cluster", "run_task"]

_WAIT_SECONDS = 10.0
_LOST_SECONDS = 60.0
_KEPT = ("report.json", "report.html", "trace.npz", "series.npz")
_LOG_CHARACTERS = 4000
Files = dict[str, bytes]
"""Bytes by path below build/, or below the folder of a run."""


def describe() -> dict[str, str]:
    """What must be equal on all workers. Models are compiled for a processor."""
    host = this_host()
    dask = importlib.metadata.version("distributed")
    return {"sources and tools": made_of(), "processor": f"{host.name} {host.key}".strip(), "Dask": dask}


def install(model: Files) -> None:
    """Put a model where the build would have left it, unless it is there."""
    folders = {Path(name).parent for name in model}
    for folder in folders:
        place = build_root() / folder
        if place.is_dir():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=place.parent))
        for name, data in model.items():
            if Path(name).parent == folder:
                (work / Path(name).name).write_bytes(data)
                (work / Path(name).name).chmod(0o755)
        try:
            work.rename(place)
        except OSError:  # another one was here first
            shutil.rmtree(work, ignore_errors=True)


def run_task(task: dict[str, Any], timeout_seconds: float | None, first: bool, model: Files) -> dict[str, Any]:
    """On a worker: the outcome of a task, the files of its run, and, of the first of a group, its models. `model`: what
    that one sent back."""
    install(model)
    with tempfile.TemporaryDirectory(prefix="plexus-") as place:
        log, run = Path(place) / "workers.log", Path(place) / "run"
        worker = Worker(log)
        try:
            found = worker.run({**task, "out": str(run), "tell_models": True}, timeout_seconds)
        finally:
            worker.kill()
        return {
            "models": _files(found.pop("models", [])) if first else {},
            "found": found,
            "files": {name: (run / name).read_bytes() for name in _KEPT if (run / name).is_file()},
            "said": log.read_text(errors="replace")[-_LOG_CHARACTERS:] if found["status"] == "crashed" else "",
        }


def _files(models: list[str]) -> Files:
    paths = [path for name in models for path in (build_root() / name).iterdir() if path.is_file()]
    # the record last: it says that the others are whole
    return {str(p.relative_to(build_root())): p.read_bytes() for p in sorted(paths, key=lambda p: p.name == RECORD)}


class _Cluster:
    """A connection to a scheduler. Errors: PlexusError in a sentence."""

    def __init__(self, address: str):
        try:
            from distributed import Client
        except ImportError:
            raise PlexusError("--cluster needs Dask: pip install 'plexus[cluster]'") from None
        self.address = address
        try:
            self.client = Client(address, timeout=_WAIT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise PlexusError(f"no scheduler of Dask answers at {address}: {error}") from None
        self._seen = time.monotonic()

    def need_alike(self) -> None:
        """Errors: PlexusError if there is no worker, or one of other sources, tools or processor."""
        end = time.monotonic() + _WAIT_SECONDS
        while not self._workers() and time.monotonic() < end:
            time.sleep(0.1)
        if not self._workers():
            raise PlexusError(f"the scheduler at {self.address} has no worker")
        own = describe()
        told: Any = self.client.run(describe, on_error="return")
        for name, theirs in sorted(told.items()):
            if not isinstance(theirs, dict):
                raise PlexusError(f"worker {name} cannot run points: {theirs}")
            for key, value in own.items():
                if theirs.get(key) != value:
                    raise PlexusError(
                        f"worker {name} has other {key} than this machine: {theirs.get(key)}, not {value}"
                    )

    def _workers(self) -> dict[str, Any]:
        told: Any = self.client.scheduler_info(n_workers=-1)
        return told["workers"]

    def need_any(self) -> None:
        """Errors: PlexusError if all workers have been gone for a while."""
        if self._workers():
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > _LOST_SECONDS:
            raise PlexusError(f"all workers at {self.address} are gone; the same command goes on with new ones")


def run_on_cluster(
    plan: Plan,
    folder: Path,
    *,
    address: str,
    timeout_seconds: float | None,
    pages: bool,
    fast: bool,
    came: Callable[[Point, dict[str, Any]], None],
) -> None:
    """As run_locally, on the workers of the Dask scheduler at `address`."""
    from distributed import as_completed

    cluster = _Cluster(address)
    client = cluster.client
    with client:
        cluster.need_alike()
        running: dict[Any, tuple[Group, Point, bool, float]] = {}
        arriving: Any = as_completed(loop=client.loop)

        def submit(group: Group, point: Point, first: bool, model: Any) -> None:
            task = task_of(point, folder, group.model, fast=fast, page=pages)
            future = client.submit(run_task, task, timeout_seconds, first, model, pure=False)
            running[future] = (group, point, first, time.monotonic())
            arriving.add(future)

        for group in plan.groups:
            submit(group, group.points[0], True, {})
        while running:
            while not arriving.has_ready():
                cluster.need_any()
                time.sleep(0.05)
            future = next(arriving)
            group, point, first, begin = running.pop(future)
            try:
                answer = future.result()
            except Exception as error:  # a worker that died over it, again and again
                answer = {"models": {}, "files": {}, "said": "", "found": {"status": "crashed", "sentence": str(error)}}
            _keep(folder, point, answer)
            if first:
                model = client.submit(dict, answer["models"], pure=False)  # a worker that dies with it loses nothing
                for other in group.points[1:]:
                    submit(group, other, False, model)
            came(point, {"seconds": round(time.monotonic() - begin, 3), **answer["found"]})


def _keep(folder: Path, point: Point, answer: dict[str, Any]) -> None:
    for name, data in answer["files"].items():
        path = folder / "runs" / point.key / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as place:
            place.write_bytes(data)
    if answer["said"]:
        with (folder / "workers.log").open("a") as log:
            log.write(f"{point.command}\n{answer['said']}")
