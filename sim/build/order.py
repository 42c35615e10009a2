"""What is to be built, and the hash over all that it depends on."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import cocotb_tools.config

from rtl.contract.any_config import AnyConfig
from rtl.contract.config_fields import built_values
from sim.build.guided import Training
from sim.build.host import Host
from sim.build.sources import sources_of
from sim.build.tops import Top
from sim.progress import Progress
from sim.toolchain import FST_HEADERS, MAKE_VARIABLES, ROOT, tool_versions

if TYPE_CHECKING:
    from rtl.emit.verilog import Emitted

__all__ = ["Alteration", "Order", "digest"]

_COMPILED_BY = (
    "build/compile.py",
    "build/guided.py",
    "build/host.py",
    "native/one_thread.cpp",
    "build/one_file.py",
    "build/joined.py",
    "build/lists.py",
    "build/objects.py",
)
"""Files of sim/ that decide what becomes of Verilog."""
_COUNTED_BY = Path(__file__).resolve().parent / "coverage.py"
"""What decides besides in a model that counts lines and toggles."""


class Alteration(Protocol):
    """Another Verilog of a top than the emitter makes, as one with mutants in it. `key` (JSON): all that decides it."""

    @property
    def key(self) -> Mapping[str, Any]: ...

    def emit(self, component: Any, folder: Path, step: Progress) -> "Emitted":
        """The Verilog of the module `top`. Files left in `folder` stay in the build."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
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
    profiled: bool = False
    training: Training | None = None
    host: Host | None = None  # of a model that runs long, which the compiler takes more time for

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
        return digest(what)[:20], sources.files

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
            "profiled": self.profiled,
            "training": self.training.key if self.training else "",
            "host": [self.host.name, self.host.key] if self.host else [],
            "libs": str(cocotb_tools.config.libs_dir) if self.kind == "cocotb" else "",
            **({"coverage": [hashlib.sha256(_COUNTED_BY.read_bytes()).hexdigest()]} if self.coverage else {}),
        }


def digest(value: Any) -> str:
    """Of anything that JSON can write."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
