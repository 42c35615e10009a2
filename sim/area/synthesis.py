"""Units through Yosys, several at once, each once for all: results are kept by what Yosys sees and does."""

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sim.area import cells, levels, result, script
from sim.area.result import Mapped, mapped_of
from sim.area.units import Unit
from sim.build.children import ending_in_order, run_child
from sim.errors import PlexusError
from sim.toolchain import build_root, environment, tool_versions
from sim.whole_file import whole_file

__all__ = ["kept", "made_by", "mapped_text", "shelf", "synthesise", "tidy"]

_MODULES = (cells, levels, result, script)


class _StoppedError(Exception):
    """Somebody else failed, or the user has had enough."""


def shelf() -> Path:
    """Where results are kept."""
    return build_root() / "area"


@cache
def made_by() -> str:
    """A digest of what decides what becomes of a unit."""
    files = [cells.LIBERTY, *(Path(str(module.__file__)) for module in _MODULES)]
    what = [[hashlib.sha256(file.read_bytes()).hexdigest() for file in files], tool_versions()["pyosys"]]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _place(digest: str, deep: bool) -> Path:
    key = hashlib.sha256(f"{digest} {made_by()}".encode()).hexdigest()[:20]
    return shelf() / "units" / f"{key}{'-deep' if deep else ''}.json"


def kept(digest: str, *, deep: bool = False) -> Mapped | None:
    """The result of a unit that was made before; of a spoilt file nothing, and it is written again."""
    with suppress(OSError, ValueError, TypeError):
        return Mapped(**json.loads(_place(digest, deep).read_text()))
    return None


def tidy() -> None:
    """Folders of processes that were killed."""
    for left in shelf().glob(".unit-*"):
        if not Path(f"/proc/{left.name.split('-')[1]}").exists() and Path("/proc/self").exists():
            shutil.rmtree(left, ignore_errors=True)


def mapped_text(unit: Unit, tick: Callable[[], None], *, deep: bool = False) -> str:
    """A unit as Yosys maps it to the ten cells, in Yosys's JSON. Errors: PlexusError with Yosys's words."""
    name = unit.modules[0].name
    with TemporaryDirectory(dir=shelf(), prefix=f".unit-{os.getpid()}-") as at:
        folder = Path(at)
        command = [environment()["YOSYS"], "-q", "-s", script.write_unit(unit, folder, deep=deep).name]
        own = {**environment(), "TMPDIR": at}
        with (folder / "log").open("w") as log:
            code = run_child(command, folder=folder, environment=own, out=log, tick=tick)
        if code:
            words = (folder / "log").read_text(errors="replace").strip().splitlines()
            raise PlexusError(f"Yosys fails on {name}: {words[-1] if words else f'code {code}'}")
        return (folder / script.RESULT).read_text()


def _make(unit: Unit, stop: threading.Event, deep: bool) -> Mapped:
    """Errors: PlexusError with Yosys's words."""

    def tick() -> None:
        if stop.is_set():
            raise _StoppedError

    tick()
    text = mapped_text(unit, tick, deep=deep)
    try:
        mapped = mapped_of(text, unit.modules[0].name)
    except ValueError as error:
        raise PlexusError(str(error)) from None
    with whole_file(_place(unit.digest, deep)) as place:
        place.write_text(json.dumps(mapped.as_dict()))
    return mapped


def synthesise(
    units: Sequence[Unit],
    *,
    jobs: int,
    deep: bool = False,
    came: Callable[[str], None],
    tick: Callable[[], None],
) -> dict[str, Mapped]:
    """Results by digest. `deep`: with more time for fewer levels. `came` hears the name of each unit when its result is
    there, `tick` is called meanwhile.

    Errors: PlexusError. What was made before an error or an interrupt is kept.
    """
    found, stop = dict[str, Mapped](), threading.Event()
    (shelf() / "units").mkdir(parents=True, exist_ok=True)
    tidy()
    missing: list[Unit] = []
    for unit in units:
        if (mapped := kept(unit.digest, deep=deep)) is None:
            missing.append(unit)
        else:
            found[unit.digest] = mapped
            came(unit.names[0])
    missing.sort(key=lambda unit: -unit.gates)
    with ending_in_order(), ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            running = {pool.submit(_make, unit, stop, deep): unit for unit in missing}
            while running:
                done, _ = wait(running, timeout=0.25, return_when=FIRST_COMPLETED)
                tick()
                for future in done:
                    unit = running.pop(future)
                    found[unit.digest] = future.result()
                    came(unit.names[0])
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return found
