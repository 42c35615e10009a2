"""Which files a top depends on, and a digest of them, without importing or elaborating anything.

Python files are followed through their import statements; a file of rtl/cells belongs to the design
if a followed Python file names it in a string, and modules that fit a pattern in one, as in
sim.systems.*.system, are followed, too. Modules that a file names in a string are followed on request, but not
those of sim/build/tops.py, which names everything. Digests are kept by size and time of change, so that asking again
costs a few milliseconds.
"""

import ast
import hashlib
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sim.errors import PlexusError
from sim.toolchain import ROOT, build_root

__all__ = ["Sources", "sources_of"]

_ROOMS = ("rtl", "firmware", "sim", "verif")
_FOLLOWED = (*_ROOMS, "plexus")
"""Whose imports are followed: plexus.py is a module beside the rooms."""
_MODULE = re.compile(rf"((?:{'|'.join(_ROOMS)})(?:\.\w+)+)(?::\w+)?")
_PATTERN = re.compile(rf"(?:{'|'.join(_ROOMS)})(?:\.\w+)*\.\*(?:\.\w+)+")
_TABLE = "sim/build/tops.py"
_INCLUDE = re.compile(r'^\s*[#`]include\s+"([^"]+)"', re.M)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


class Sources:
    """The files found and one digest over their contents."""

    def __init__(self, files: dict[str, str]):
        self.files = files  # path in the repository: digest
        text = json.dumps(sorted(files.items()))
        self.digest = hashlib.sha256(text.encode()).hexdigest()


class _Facts:
    """Digest, imports and strings of each file, remembered between processes."""

    def __init__(self) -> None:
        self.store = build_root() / "sources.json"
        self.changed = False
        self.known: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            found = json.loads(self.store.read_text())
            if isinstance(found, dict):
                self.known = {name: fact for name, fact in found.items() if _complete(name, fact)}

    def of(self, path: Path) -> dict[str, Any]:
        status = path.stat()
        stamp = [status.st_size, status.st_mtime_ns]
        key = _name(path)
        fact = self.known.get(key)
        if fact is None or fact["stamp"] != stamp:
            data = path.read_bytes()
            fact = {"stamp": stamp, "digest": hashlib.sha256(data).hexdigest()}
            if path.suffix == ".py":
                fact["imports"], fact["strings"], fact["named"], fact["patterns"] = _python(data, key)
            else:
                fact["includes"] = _INCLUDE.findall(data.decode(errors="replace"))
            self.known[key] = fact
            self.changed = True
        return fact

    def save(self) -> None:
        if not self.changed:
            return
        temporary = self.store.with_suffix(f".{os.getpid()}")
        try:
            self.store.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(self.known))
            temporary.replace(self.store)
        except OSError:
            temporary.unlink(missing_ok=True)  # only a cache: the next call computes again


def _complete(name: str, fact: Any) -> bool:
    """Whether a fact has all that one has; what a spoiled file says is found out anew."""
    keys = ("imports", "strings", "named", "patterns") if name.endswith(".py") else ("includes",)
    return isinstance(fact, dict) and all(key in fact for key in ("stamp", "digest", *keys))


def _python(data: bytes, name: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Modules of ours that a file imports; names of source files, of modules and patterns of such in its strings."""
    try:
        tree = ast.parse(data)
    except SyntaxError as error:
        raise PlexusError(f"{name} line {error.lineno} is no valid Python: {error.msg}") from None
    imports: set[str] = set()
    strings: set[str] = set()
    named: set[str] = set()
    patterns: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports.add(node.module)
            imports.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"[\w/.-]+\.(sv|v|vlt|cpp|h)", node.value):
                strings.add(node.value)
            elif found := _MODULE.fullmatch(node.value):
                named.add(found[1])
            elif _PATTERN.fullmatch(node.value):
                patterns.add(node.value)
    ours = sorted(n for n in imports if n.split(".")[0] in _FOLLOWED)
    return ours, sorted(strings), sorted(named), sorted(patterns)


def _fitting(pattern: str) -> list[str]:
    """The modules that a pattern as in sim.systems.*.system names."""
    files = sorted(ROOT.glob(f"{pattern.replace('.', '/')}.py"))
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]


def _file(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def sources_of(modules: Iterable[str], extra: Iterable[Path] = (), *, named: bool = False) -> Sources:
    """Everything the Python `modules` and the `extra` files need, directly or not. `named`: by name in a string too."""
    facts = _Facts()
    cells = ROOT / "rtl" / "cells"
    found: dict[str, str] = {}
    pending: list[Path] = list(extra)
    seen_modules: set[str] = set()
    names = list(modules)
    while names or pending:
        if names:
            name = names.pop()
            parts = name.split(".")
            for length in range(1, len(parts) + 1):  # a package's __init__ runs first
                module = ".".join(parts[:length])
                if module not in seen_modules:
                    seen_modules.add(module)
                    path = _file(module)
                    if path is not None:
                        pending.append(path)
            continue
        path = pending.pop()
        key = _name(path)
        if key in found:
            continue
        fact = facts.of(path)
        found[key] = fact["digest"]
        names.extend(fact.get("imports", ()))
        names.extend(name for pattern in fact.get("patterns", ()) for name in _fitting(pattern))
        names.extend(fact.get("named", ()) if named and key != _TABLE else ())
        pending.extend(cells / s for s in fact.get("strings", ()) if (cells / s).is_file())
        pending.extend(path.parent / s for s in fact.get("includes", ()) if (path.parent / s).is_file())
    facts.save()
    return Sources(found)
