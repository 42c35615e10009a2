"""What is the same for every model and so compiled once, kept under build/objects by content and by compiler.

Our C++ cells, Verilator's runtime, and a precompiled header: of the two seconds that the compiler took for a small
bench's model, 1.6 went into the standard library's headers and Verilator's, read twice.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sim.build.step import BuildError, run_step
from sim.progress import Progress
from sim.toolchain import MAKE_VARIABLES, build_root, compiler, environment, tool_versions

__all__ = ["Runtime", "compile_object", "do_without", "precompiled"]

_HEADER = """#include <libgen.h>
#include <memory>
#include <stdio.h>
#include <string>
#include "verilated.h"
#include "verilated_dpi.h"
#include "verilated_syms.h"
#include "verilated_vpi.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#elif VM_TRACE
#include "verilated_vcd_c.h"
#endif
"""
"""What Verilator's C++ of any design and cocotb's program around it include."""


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _identity() -> list[object]:
    """Of the C++ compiler: another one at the same path is another one."""
    stat = os.stat(compiler())
    return [compiler(), stat.st_size, stat.st_mtime_ns]


def _whole(kept: Path) -> bool:
    """Whether a file has the size that its name ends with: one that lost some would fail in every later build."""
    return kept.stat().st_size == int(kept.name.partition(".")[0].rpartition("-")[2])


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a kept folder, so that builds at once make what they share once. It goes with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def compile_object(
    source: Path, flags: Sequence[str], log: Path, progress: Progress, includes: Sequence[Path] = ()
) -> Path:
    """One C++ file to an object that is kept by content. Returns its path."""
    command = [compiler(), *flags, *(f"-I{i}" for i in includes)]
    preprocessed = subprocess.run(
        [*command, "-E", "-P", str(source)], env=environment(), capture_output=True, check=False
    )
    if preprocessed.returncode:
        raise BuildError(f"{source.name} failed to compile:\n{preprocessed.stderr.decode(errors='replace')}")
    stat = os.stat(command[0])
    seed = "\0".join([*command, str(stat.st_size), str(stat.st_mtime_ns)]).encode()
    key = hashlib.sha256(seed + preprocessed.stdout).hexdigest()[:24]
    objects = build_root() / "objects"
    kept = next((o for o in objects.glob(f"{source.stem}-{key}-*.o") if _whole(o)), None)
    if kept is None:
        objects.mkdir(parents=True, exist_ok=True)
        temporary = objects / f"{source.stem}-{key}.{os.getpid()}.tmp"
        read = temporary.with_suffix(".ii")  # what the compiler need not read again
        try:
            read.write_bytes(preprocessed.stdout)
            run_step(
                [*command, "-c", str(read), "-o", str(temporary)],
                log.parent,
                log,
                progress,
                f"compiling {source.name}",
            )
            kept = objects / f"{source.stem}-{key}-{temporary.stat().st_size}.o"
            temporary.replace(kept)
        finally:
            temporary.unlink(missing_ok=True)
            read.unlink(missing_ok=True)
    return kept


class Runtime:
    """Objects of Verilator's runtime for models of one kind. Only what does not see a design's header is kept."""

    def __init__(self, kind: str, waves: str, flags: Sequence[str]):
        parts = [kind, waves, *_identity(), tool_versions()["verilator"], MAKE_VARIABLES, list(flags)]
        self.folder = build_root() / "objects" / f"runtime-{_digest(*parts)}"

    def lend(self, obj: Path) -> None:
        """Put what is kept into a fresh build folder, so that make finds it done."""
        for o in self.folder.glob("*-*.o"):
            if _whole(o):
                shutil.copy(o, obj / f"{o.stem.rpartition('-')[0]}.o")

    def keep(self, obj: Path) -> None:
        """Keep the runtime's objects of a finished build."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for o in obj.glob("verilated*.o"):
            lasting = self.folder / f"{o.stem}-{o.stat().st_size}.o"
            if not lasting.exists() or not _whole(lasting):
                temporary = self.folder / f"{o.name}.{os.getpid()}"
                shutil.copy(o, temporary)
                temporary.replace(lasting)

    def objects(
        self, names: Sequence[str], obj: Path, make: Sequence[str], log: Path, progress: Progress
    ) -> list[Path]:
        """The kept objects of these names; what is missing is compiled in `obj` by the command `make`."""
        found = self._kept(names)
        if len(found) < len(names):
            with _alone(self.folder):
                missing = [name for name in names if name not in self._kept(names)]
                if missing:
                    run_step([*make, *(f"{n}.o" for n in missing)], obj, log, progress, "compiling Verilator's runtime")
                    self.keep(obj)
            found = self._kept(names)
        return [found[name] for name in names]

    def _kept(self, names: Sequence[str]) -> dict[str, Path]:
        return {name: o for name in names for o in self.folder.glob(f"{name}-*.o") if _whole(o)}


_unfit: set[Path] = set()
"""Folders of headers that this process has seen fail."""


def precompiled(flags: Sequence[str], log: Path, progress: Progress) -> Path | None:
    """What to -include so that the compiler, given the same flags, takes the precompiled header; None if it makes none.

    No text lies at that path, only "<path>.gch", which g++ and clang++ look for first: where it does not fit, the
    compiler fails at once and does not read a million characters instead.
    """
    parts = [_HEADER, *_identity(), tool_versions()["verilator"], list(flags)]
    folder = build_root() / "objects" / f"header-{_digest(*parts)}"
    if folder in _unfit:
        return None
    kept = _kept_header(folder)
    if kept is None:
        with _alone(folder):
            kept = _kept_header(folder) or _precompile(folder, flags, log, progress)
    if kept is None:
        _unfit.add(folder)
        return None
    return kept.with_suffix("")


def do_without(header: Path) -> None:
    """A compiler failed with what `precompiled` gave: this process shall have no more of it."""
    _unfit.add(header.parent)


def _kept_header(folder: Path) -> Path | None:
    return next((h for h in folder.glob("model-*.h.gch") if _whole(h)), None)


def _precompile(folder: Path, flags: Sequence[str], log: Path, progress: Progress) -> Path | None:
    """Make it, in `folder`, whose lock we hold. A compiler that cannot is no error: the build goes on without."""
    for left in (*folder.glob("*.tmp"), *folder.glob("*.gch")):  # of a build that was killed, or spoilt
        left.unlink()
    text = folder / "model.h"  # clang++ wants to find it unchanged in every later use
    if not text.exists() or text.read_text() != _HEADER:
        text.write_text(_HEADER)
    temporary = folder / f"{os.getpid()}.tmp"
    command = [compiler(), *flags, "-x", "c++-header", str(text), "-o", str(temporary)]
    try:
        run_step(command, folder, log, progress, "precompiling Verilator's headers")
        return temporary.rename(folder / f"model-{temporary.stat().st_size}.h.gch")
    except BuildError:
        return None
    finally:
        temporary.unlink(missing_ok=True)
