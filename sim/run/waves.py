"""Which waves a run writes: into what kind of file, of which cycles, of which part of the design."""

import re
from dataclasses import dataclass
from pathlib import Path

from sim.errors import PlexusError

__all__ = ["KINDS", "Waves", "waves_kind"]

KINDS = ("fst", "vcd")
_MODULE = re.compile(r"^module (\\\S+|\w+) ?\(.*?^endmodule", re.M | re.S)
_INSTANCE = re.compile(r"^  (\\\S+|\w+) +(?:#\([^;]*?\) +)?(\\\S+|\w+) +\(", re.M)
_WORDS = {"assign", "always", "initial", "function", "input", "output", "module", "if", "wire", "reg"}


def waves_kind(path: Path) -> str:
    """fst or vcd, by the end of the file's name. Errors: PlexusError for any other."""
    kind = path.suffix.removeprefix(".")
    if kind not in KINDS:
        raise PlexusError(f"waves go into a file that ends in .fst (small) or .vcd, not {path}")
    return kind


def _below(text: str) -> dict[str, dict[str, str]]:
    """Of each module of the Verilog its instances: name -> module. Names that are words of Verilog, as `instance`, are
    escaped there, and not in waves."""
    found: dict[str, dict[str, str]] = {}
    for module in _MODULE.finditer(text):
        instances = {name.removeprefix("\\"): what for what, name in _INSTANCE.findall(module[0]) if what not in _WORDS}
        found[module[1]] = instances
    return found


def _path(scope: str, verilog: Path) -> str:
    """`scope` as the model calls it. Errors: PlexusError that names what there is at the first part that is wrong."""
    below = _below(verilog.read_text())
    parts = scope.split(".")
    if parts[0] == "top":
        del parts[0]
    found = ["top"]
    module = "top"
    for part in parts:
        known = below.get(module, {})
        if part not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise PlexusError(f"there is no scope {part!r} in {'.'.join(found)}; those in it: {listed}")
        found.append(part)
        module = known[part]
    return " ".join(["top", *found])  # the model's own name comes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """A wave file and what goes into it: cycles from `first` on and before `end`, all that is in `scope` and below.

    Errors: PlexusError for a kind of file or a window that is none.
    """

    path: Path
    first: int = 0
    end: int | None = None
    scope: str = ""

    def __post_init__(self) -> None:
        waves_kind(self.path)
        if self.end is not None and self.end <= self.first:
            raise PlexusError(f"waves until cycle {self.end} must end behind cycle {self.first}, where they begin")

    @property
    def kind(self) -> str:
        """fst or vcd."""
        return waves_kind(self.path)

    def scope_in(self, folder: Path) -> str:
        """`scope` as the model built in `folder` calls it. Errors: PlexusError that lists those there are."""
        return _path(self.scope, folder / "top.v") if self.scope else ""
