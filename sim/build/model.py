"""A top and a configuration to a model, built once for each content.

build/<top>/<hash>/ holds a finished build and nothing else: work happens in a folder beside it that is
renamed when all is done, under a lock on the hash. So an interrupted build leaves nothing that a later
one trusts, and two processes that want the same model share it.
"""

import errno
import fcntl
import hashlib
import inspect
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import cocotb_tools.config

from rtl.contract.config_fields import built_values
from rtl.contract.switch_config import AnyConfig
from sim.build.children import ending_in_order
from sim.build.record import SpoiltError, read_record, write_record
from sim.build.sources import sources_of
from sim.build.tops import Top, factory
from sim.build.tops import top as find_top
from sim.errors import PlexusError
from sim.progress import Progress, progress
from sim.systems.configurations import kind_of_type
from sim.toolchain import FST_HEADERS, MAKE_VARIABLES, ROOT, activate, build_root, need_build_tools, tool_versions

if TYPE_CHECKING:
    from rtl.emit.verilog import Emitted

__all__ = ["Alteration", "Built", "build", "has_option", "make_component"]

KINDS = ("cocotb", "native")

_COMPILED_BY = ("build/compile.py", "native/one_thread.cpp", "build/one_file.py", "build/objects.py")
"""Files of sim/ that decide what becomes of Verilog."""
_COUNTED_BY = Path(__file__).resolve().parent / "coverage.py"
"""What decides besides in a model that counts lines and toggles."""

_STARTED = time.time()


class Alteration(Protocol):
    """Another Verilog of a top than the emitter makes, as one with mutants in it. `key` (JSON): all that decides it."""

    @property
    def key(self) -> Mapping[str, Any]: ...

    def emit(self, component: Any, folder: Path, step: Progress) -> "Emitted":
        """The Verilog of the module `top`. Files left in `folder` stay in the build."""
        ...


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

        Errors: PlexusError that lists the names.
        """
        if not name:
            return 0
        if name not in self.faults:
            there = "; ".join(self.faults) or "none"
            raise PlexusError(f"top {self.top} has no fault {name!r} to plant; there are: {there}")
        return self.faults.index(name) + 1


def _parameters(make: Any) -> dict[str, inspect.Parameter]:
    """Of a factory. Not of a class itself: some Pythons then look at Amaranth's __new__, which takes anything."""
    known = inspect.signature(make.__init__ if inspect.isclass(make) else make).parameters
    return {name: parameter for name, parameter in known.items() if name != "self"}


def has_option(t: Top, name: str) -> bool:
    """Whether the component of a top takes the keyword `name`."""
    return name in _parameters(factory(t))


def make_component(t: Top, cfg: AnyConfig, options: Mapping[str, Any]) -> Any:
    """The component of a top; of another system than `cfg` is of at its defaults, if there are any.

    Errors: PlexusError for an option it does not have.
    """
    make = factory(t)
    known = _parameters(make)
    wanted = kind_of_type(known["cfg"].annotation) if "cfg" in known else None
    if wanted is not None and wanted.has_default and not isinstance(cfg, wanted.type):
        cfg = wanted.type()
    for name in options:
        if name not in known:
            listed = ", ".join(n for n in known if n != "cfg") or "none"
            raise PlexusError(f"top {t.name} has no option {name!r}; its options are: {listed}")
    missing = [
        name
        for name, parameter in known.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in ("cfg", *options)
    ]
    if missing:
        raise PlexusError(f"top {t.name} needs {' and '.join(missing)}, so it is built by its bench only")
    args = [cfg] if "cfg" in known else []
    return make(*args, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What is to be built."""

    top: Top
    cfg: AnyConfig
    kind: str
    options: dict[str, Any]
    planted: bool
    waves: str
    extra: tuple[Path, ...]
    coverage: bool = False
    altered: Alteration | None = None

    def key(self) -> tuple[str, dict[str, str]]:
        """The hash that names the build, and the files it depends on with their digests."""
        modules = [self.top.factory.partition(":")[0], "rtl.emit.verilog"]
        sources = sources_of(modules, self.extra)
        what = {
            "top": self.top.factory,
            "config": self._built(),
            "options": self.options,
            "planted": self.planted,
            "sources": sources.digest,
            "how": self.how(),
        }
        if self.altered:
            what["altered"] = dict(self.altered.key)
        return _digest(what)[:20], sources.files

    def _built(self) -> dict[str, Any]:
        """What of the configuration hardware may depend on. Tops of benches may read all of it."""
        every = not self.top.factory.startswith("rtl.")
        return built_values(self.cfg, every=every)

    def how(self) -> dict[str, Any]:
        """What turns Verilog into a model."""
        return {
            "kind": self.kind,
            "waves": self.waves,
            "fst": [p.read_text() for p in FST_HEADERS] if self.waves == "fst" else [],
            "extra": [os.path.relpath(p, ROOT) for p in self.extra],
            "compile": [hashlib.sha256((ROOT / "sim" / name).read_bytes()).hexdigest() for name in _COMPILED_BY],
            "tools": tool_versions(),
            "make": MAKE_VARIABLES,
            "cxx": os.environ.get("CXX", ""),
            "libs": str(cocotb_tools.config.libs_dir) if self.kind == "cocotb" else "",
            **({"coverage": [hashlib.sha256(_COUNTED_BY.read_bytes()).hexdigest()]} if self.coverage else {}),
        }


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


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


def _make(order: _Order, folder: Path, files: Mapping[str, str], step: Progress) -> None:
    """Everything that happens inside the temporary folder."""
    from rtl.emit.verilog import emit
    from sim.build.compile import compile_model

    need_build_tools()
    step.stage("elaborate")
    activate()
    _need_unchanged(files)
    component = make_component(order.top, order.cfg, order.options)
    if order.altered:
        emitted = order.altered.emit(component, folder, step)
    else:
        emitted = emit(component, "top", fields=bool(order.waves), planted=order.planted, located=order.coverage)
    _need_unchanged(files)
    unseen = [s.name for s in emitted.sources if str(s.relative_to(ROOT)) not in files]
    if unseen:
        raise PlexusError(
            f"{order.top.name} places {unseen[0]} but no file it imports names that cell in a plain string"
        )
    others = sorted((f, d) for f, d in files.items() if not f.endswith(".py"))
    places = [repr(emitted.places)] if order.coverage else []
    content = _digest([emitted.text, list(emitted.hier_blocks), others, order.how(), *places])
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
) -> Built:
    """The model of `top` at `cfg`, built if no build of the same content is there.

    kind: cocotb (a program) or native (a shared library with `extra_cpp` in it). planted: with the
    faults of its units and an input `plant` that chooses one. waves: the model can write a "vcd" or an "fst".
    coverage: it counts lines and toggles. altered: what is built instead of the top's own Verilog.
    Errors: PlexusError in a sentence; BuildError with the end of the log, which stays in build/logs.
    """
    if kind not in KINDS:
        raise PlexusError(f"a model is of kind {' or '.join(KINDS)}, not {kind!r}")
    order = _Order(
        top=find_top(top),
        cfg=cfg,
        kind=kind,
        options=dict(options or {}),
        planted=planted,
        waves=waves,
        coverage=coverage,
        extra=tuple(extra_cpp),
        altered=altered,
    )
    key, files = order.key()
    shelf = build_root() / top
    folder = shelf / key

    def done(step: Progress | None = None) -> Built:
        record = read_record(folder)
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
            work = shelf / f".{key}-{os.getpid()}"
            work.mkdir()
            try:
                _make(order, work, files, step)
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
