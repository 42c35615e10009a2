"""Verdicts kept by content: what passed with the same model, bench, seed and tools need not run again.

`build/verdicts/<key>/` holds the evidence of a run. A key is a digest over everything that the verdict depends on, so
nothing here is ever out of date; `make clean` removes it. FRESH=1, CI=true, PLEXUS_TOGGLES=1 and
PLEXUS_COVERAGE=1 run everything.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from sim.build.sources import sources_of
from sim.toolchain import ROOT, build_root, tool_versions

__all__ = ["BENCH", "USES_VARIABLE", "bench_digest", "find", "fresh", "keep", "key_of", "lay_out", "note_use"]

USES_VARIABLE = "PLEXUS_USES"
"""Names a file to which this process and those below it add the tops that they use, a line each."""
BENCH = "(bench)"
"""The line for a run of a bench, whose verdict is kept by itself."""

_ROOMS = ("rtl", "firmware", "sim", "verif")
_TRUE = ("1", "true", "yes")
_FRESH = ("FRESH", "CI", "PLEXUS_TOGGLES", "PLEXUS_COVERAGE")


def fresh() -> bool:
    """Whether nothing kept may be used."""
    return any(os.environ.get(name, "").lower() in _TRUE for name in _FRESH)


def _shelf() -> Path:
    return build_root() / "verdicts"


@cache
def _surroundings() -> dict[str, str]:
    """What every verdict depends on: tools, packages, files of the rooms that are not Python, but for plans."""
    hashed = hashlib.sha256()
    locks = sorted(ROOT.glob("requirements*.lock"))
    data = (p for room in _ROOMS for p in sorted((ROOT / room).rglob("*")) if p.is_file())
    for path in [*locks, *(p for p in data if p.suffix not in (".py", ".pyc") and "plan" not in p.parts)]:
        hashed.update(f"{path.relative_to(ROOT)} {path.stat().st_size}\n".encode())
        hashed.update(path.read_bytes())
    return {**tool_versions(), "files": hashed.hexdigest(), "root": str(ROOT)}  # tracebacks name the place


def key_of(what: Mapping[str, Any]) -> str:
    """The digest over `what` (JSON) and the surroundings."""
    text = json.dumps([what, _surroundings()], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def bench_digest(bench: str) -> str:
    """Of a bench and all that it imports."""
    return sources_of([bench]).digest


def find(key: str) -> Path | None:
    """The folder of what is kept."""
    folder = _shelf() / key
    return folder if folder.is_dir() else None


def keep(key: str, files: Iterable[Path]) -> None:
    """Keep the evidence of a verdict; links, so it takes no room. A kept one stays."""
    shelf = _shelf()
    work = shelf / f".{key}-{os.getpid()}"
    with suppress(OSError):  # a full disk, or another process that was faster: only a cache
        try:
            work.mkdir(parents=True)
            for path in files:
                os.link(path, work / path.name)
            work.rename(shelf / key)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def lay_out(kept: Path, folder: Path) -> None:
    """Put what is kept into the folder of a run as if it had just been run."""
    for path in kept.iterdir():
        os.link(path, folder / path.name)
        os.utime(folder / path.name)


def note_use(name: str) -> None:
    """Tell who wants to know that this top, or a bench, is used."""
    if place := os.environ.get(USES_VARIABLE):
        with suppress(OSError), open(place, "a") as uses:
            uses.write(f"{name}\n")
