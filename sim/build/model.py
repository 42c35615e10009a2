"""A top and a configuration to a model, built once for each content.

build/<top>/<hash>/ holds a finished build and nothing else: work happens in a folder beside it that is
renamed when all is done, under a lock on the hash. So an interrupted build leaves nothing that a later
one trusts, and two processes that want the same model share it.
"""

import errno
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtl.contract.any_config import AnyConfig
from sim.build.children import ending_in_order
from sim.build.component import has_option, make_component
from sim.build.guided import Training, need_guidable
from sim.build.host import PORTABLE, this_host
from sim.build.in_fork import in_fork
from sim.build.order import Alteration, Order, digest
from sim.build.record import SpoiltError, read_record, write_record
from sim.build.tops import top as find_top
from sim.errors import PlexusError
from sim.progress import Progress, progress
from sim.toolchain import ROOT, activate, build_root, need_build_tools, tool_versions

if TYPE_CHECKING:
    from rtl.emit.verilog import Emitted

__all__ = ["Alteration", "Built", "build", "delivered", "has_option", "make_component"]

KINDS = ("cocotb", "native")
_NAMES_TOLD = 12

_STARTED = time.time()
_delivered: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A finished build. `content`: names the Verilog and what made a model of it. `cached`: it was there already.
    `seconds`, `cpu_seconds`: of each stage, else empty."""

    top: str
    kind: str
    folder: Path
    binary: Path  # the program, or the shared library
    content: str
    faults: tuple[str, ...]  # names of those that can be planted
    cached: bool
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]

    @property
    def key(self) -> str:
        """The hash that names the build."""
        return self.folder.name

    def plant(self, name: str) -> int:
        """What the input `plant` of the top is for the fault of that name; 0 for no name.

        Errors: PlexusError with the names, of many with those like this one.
        """
        if not name:
            return 0
        if name not in self.faults:
            like = get_close_matches(name, self.faults, _NAMES_TOLD, 0)
            told = f"there are: {'; '.join(self.faults) or 'none'}"
            if len(self.faults) > _NAMES_TOLD:
                told = f"of {len(self.faults)} the most alike are: {'; '.join(like)}"
            raise PlexusError(f"top {self.top} has no fault {name!r} to plant; {told}")
        return self.faults.index(name) + 1


def delivered() -> list[str]:
    """Folders below build/ of all models that this process has asked for."""
    return sorted(_delivered)


def _need_unchanged(files: Mapping[str, str]) -> None:
    """Errors: PlexusError if Python that this process may have imported changed on disk since."""
    for name in files:
        path = ROOT / name
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if path.suffix == ".py" and module in sys.modules and path.stat().st_mtime > _STARTED:
            raise PlexusError(f"{name} changed after this program started, so it would build the old one: run it again")


@contextmanager
def _locked(path: Path, waiting: Progress) -> Iterator[None]:
    """Hold the lock file `path`; others wait. It goes with the process, however that ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting.stage("wait for another build of the same")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _twin(shelf: Path, content: str) -> Path | None:
    """A finished build of the same top from the same Verilog, made under another hash."""
    for path in sorted(shelf.glob("[0-9a-f]*/built.json")):
        with suppress(SpoiltError):
            if read_record(path.parent)["content"] == content:
                return path.parent
    return None


def _adopt(twin: Path, folder: Path) -> None:
    """Copy a finished build without its runs; files are linked, not copied."""
    for name in read_record(twin)["files"]:
        if not (folder / name).exists():
            os.link(twin / name, folder / name)


def _but_for_host(order: Order) -> str:
    """The hash of a build that is the same whatever processor it is for."""
    return replace(order, host=PORTABLE).key()[0] if order.host else ""


def _tell_of_other_hosts(order: Order, same: str, shelf: Path) -> None:
    """Say of a build made for another processor, and not loaded therefore, that it is made again."""
    hosts: set[str] = set()
    for path in shelf.glob("[0-9a-f]*/built.json"):
        with suppress(SpoiltError):
            record = read_record(path.parent)
            if same and record.get("but_for_host") == same:
                hosts.add(str(record.get("host")))
    if order.host and hosts:
        told = " and ".join(f"{name} of other features" if name == order.host.name else name for name in sorted(hosts))
        print(
            f"plexus: this {order.top.name} was built for processor {told}, this one is {order.host.name}: built again",
            file=sys.stderr,
        )


def _emit(order: Order, files: Mapping[str, str], folder: Path, step: Progress) -> "Emitted":
    """The Verilog of an order. Errors: PlexusError, also if a file changed meanwhile."""
    from rtl.emit.verilog import emit

    _need_unchanged(files)
    component = make_component(order.top, order.cfg, order.options)
    if order.altered:
        emitted = order.altered.emit(component, folder, step)
    else:
        emitted = emit(
            component,
            "top",
            fields=bool(order.waves),
            runs_long=order.host is not None and not order.waves,  # waves show registers, and those of C++ are none
            planted=order.planted,
            located=order.coverage,
        )
    _need_unchanged(files)
    return emitted


def _make(order: Order, folder: Path, files: Mapping[str, str], but_for_host: str, step: Progress) -> None:
    """Everything that happens inside the temporary folder."""
    from sim.build.compile import compile_model

    need_build_tools()
    if order.training:
        need_guidable()
    step.stage("elaborate")
    activate()
    emitting = partial(_emit, order, files, folder, step)
    large = order.host is not None and not order.altered
    emitted = in_fork(emitting, step.tick) if large else emitting()
    unseen = [s.name for s in emitted.sources if str(s.relative_to(ROOT)) not in files]
    if unseen:
        raise PlexusError(
            f"{order.top.name} places {unseen[0]} but no file it imports names that cell in a plain string"
        )
    others = sorted((f, d) for f, d in files.items() if not f.endswith(".py"))
    places = [repr(emitted.places)] if order.coverage else []
    content = digest([emitted.text, emitted.generated, list(emitted.hier_blocks), others, order.how(), *places])
    twin = _twin(folder.parent, content)
    if twin is not None:
        _adopt(twin, folder)
        binary = read_record(twin)["binary"]
    else:
        binary = compile_model(
            folder,
            emitted,
            order.kind,
            extra_cpp=order.extra,
            waves=order.waves,
            coverage=order.coverage,
            host=order.host,
            profiled=order.profiled,
            training=order.training,
            config=order.cfg.as_dict(),
            progress=step,
        )
    record = {
        "top": order.top.name,
        "factory": order.top.factory,
        "kind": order.kind,
        "config": order.cfg.as_dict(),
        "options": order.options,
        "planted": order.planted,
        "faults": list(emitted.faults),
        "waves": order.waves,
        "binary": binary,
        "content": content,
        "host": order.host.name if order.host else "",
        "but_for_host": but_for_host,
        "tools": tool_versions(),
    }
    write_record(folder, record)


def build(
    top: str,
    cfg: AnyConfig,
    *,
    kind: str = "cocotb",
    options: Mapping[str, Any] | None = None,
    planted: bool = False,
    waves: str = "",
    coverage: bool = False,
    extra_cpp: Sequence[Path] = (),
    altered: Alteration | None = None,
    runs_long: bool = False,
    profiled: bool = False,
    training: Training | None = None,
) -> Built:
    """The model of `top` at `cfg`, built if no build of the same content is there.

    kind: cocotb (a program) or native (a shared library with `extra_cpp` in it). planted: with the
    faults of its units and an input `plant` that chooses one. waves: the model can write a "vcd" or an "fst".
    coverage: it counts lines and toggles. altered: what is built instead of the top's own Verilog. runs_long: compiled
    with more effort and, unless PLEXUS_PORTABLE=1, for this processor. profiled: an address tells its line of C++.
    training: compiled for what it does there.
    Errors: PlexusError in a sentence; BuildError with the end of the log, which stays in build/logs.
    """
    if kind not in KINDS:
        raise PlexusError(f"a model is of kind {' or '.join(KINDS)}, not {kind!r}")
    chosen = find_top(top)
    order = Order(
        top=chosen,
        cfg=cfg,
        kind=kind,
        options=dict(options or {}),
        planted=planted,
        waves=waves,
        coverage=coverage,
        extra=tuple(extra_cpp),
        altered=altered,
        profiled=profiled,
        training=training,
        host=this_host() if runs_long or chosen.for_host else None,
    )
    key, files = order.key()
    shelf = build_root() / top
    folder = shelf / key

    def done(step: Progress | None = None) -> Built:
        record = read_record(folder)
        _delivered.add(f"{top}/{key}")
        return Built(
            top=top,
            kind=kind,
            folder=folder,
            binary=folder / record["binary"],
            content=record["content"],
            faults=tuple(record["faults"]),
            cached=step is None,
            seconds=dict(step.seconds) if step else {},
            cpu_seconds=dict(step.cpu_seconds) if step else {},
        )

    if folder.is_dir():
        with suppress(SpoiltError):
            return done()
    try:
        with (
            ending_in_order(),
            progress(f"build {top} {cfg.name}") as step,
            _locked(shelf / f".{key}.lock", step),
        ):
            if folder.is_dir():
                try:
                    return done()
                except SpoiltError as why:
                    print(f"plexus: {why}, so {top} is built again", file=sys.stderr)
                    folder.rename(shelf / f".{key}-{os.getpid()}-spoilt")  # removed below
            for left in shelf.glob(f".{key}-*"):  # of a build that was killed
                shutil.rmtree(left, ignore_errors=True)
            but_for_host = _but_for_host(order)
            _tell_of_other_hosts(order, but_for_host, shelf)
            work = shelf / f".{key}-{os.getpid()}"
            work.mkdir()
            try:
                _make(order, work, files, but_for_host, step)
                work.rename(folder)
            except PlexusError as error:
                raise type(error)(f"{error}{_save_log(work, top, key)}") from None
            finally:
                shutil.rmtree(work, ignore_errors=True)
            step.end()
            return done(step)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise PlexusError(
                f"the disk is full: building {top} needs room under {shelf} (PLEXUS_BUILD chooses another place)"
            ) from None
        raise


def _save_log(work: Path, top: str, key: str) -> str:
    """Keep the log of a build that failed; says where."""
    log = work / "build.log"
    if not log.exists():
        return ""
    logs = build_root() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    kept = logs / f"{top}-{key}.log"
    shutil.copy(log, kept)
    return f"\nthe whole log is {kept}"
