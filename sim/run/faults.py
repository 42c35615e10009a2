"""Names of planted faults, read from the sources: nothing is elaborated.

What a build of a top can plant is in its record (`Built.faults`), parts included; here is what each unit has.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sim.build.tops import top as find_top
from sim.toolchain import ROOT

__all__ = ["VARIABLE", "Written", "exists", "own_faults", "written_faults"]

VARIABLE = "{}"
"""Stands in a name for what an f-string fills in."""
_PASS_ON = {ROOT / "rtl" / "base" / name for name in ("fault.py", "placed.py")}


@dataclass(frozen=True, slots=True)
class Written:
    """A fault in the source of the class `unit`. `name` is None where it is not written out."""

    name: str | None
    file: str  # from the root
    unit: str
    line: int

    @property
    def fixed(self) -> bool:
        """The name is the same in all instances."""
        return self.name is not None and VARIABLE not in self.name

    def may_be(self, name: str) -> bool:
        """Whether an instance of the unit has a fault of this name."""
        if self.fixed or self.name is None:
            return name == self.name
        return _pattern(self.name).fullmatch(name) is not None


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """What a name with VARIABLE in it may be. Kept, since re itself keeps few."""
    return re.compile(re.escape(name).replace(re.escape(VARIABLE), ".+"))


@cache
def written_faults() -> tuple[Written, ...]:
    """All of rtl and of the tops of benches, in the order of files and lines."""
    files = [*sorted((ROOT / "rtl").rglob("*.py")), *sorted((ROOT / "verif" / "benches").rglob("*_top.py"))]
    return tuple(fault for file in files if file not in _PASS_ON for fault in _in_file(file))


def _in_file(file: Path) -> Iterator[Written]:
    text = file.read_text()
    if "fault(" not in text and "NATIVE_FAULTS" not in text:
        return
    where = file.relative_to(ROOT).as_posix()
    for part in ast.parse(text).body:
        unit = getattr(part, "name", "")
        for node in ast.walk(part):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fault":
                yield Written(_text(node.args[0]), where, unit, node.lineno)
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "NATIVE_FAULTS":
                assert isinstance(node.value, ast.Dict)
                yield from (Written(_text(key), where, "NATIVE_FAULTS", node.lineno) for key in node.value.keys if key)


def _text(name: ast.expr) -> str | None:
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        return name.value
    if isinstance(name, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else VARIABLE for part in name.values)
    return None


def exists(name: str) -> bool:
    """Whether any unit has a fault of this name."""
    return any(written.may_be(name) for written in written_faults())


def own_faults(top: str) -> tuple[str, ...]:
    """What the class of a top asks for itself, without its parts, in the order of its source; only fixed names."""
    module, _, unit = find_top(top).factory.partition(":")
    file = f"{module.replace('.', '/')}.py"
    names = (w.name for w in written_faults() if w.fixed and (w.file, w.unit) == (file, unit))
    return tuple(dict.fromkeys(name for name in names if name is not None))
