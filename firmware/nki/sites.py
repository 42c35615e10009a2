"""Call sites of NKI in Python files, and what each becomes here. Files are read, not run."""

import ast
import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from firmware.nki import modules
from firmware.nki.registry import CALLS, MISSING, SEVERAL_CORES
from firmware.views import KernelError
from rtl.contract.config import named

__all__ = ["HERE", "Count", "Site", "counted", "kind_of", "sites"]

HERE = ("instruction", "lowered", "built")
"""Kinds of call sites that are there. The others: `missing`; `argument`, the call is there and a keyword of the site
is not; `several cores`."""
_SHORT = {"nki.isa": "nisa", "nki.language": "nl", "nki.collectives": "ncc"}
_INDIRECT = ("scalar_offset", "vector_offset")


@dataclass(frozen=True, slots=True)
class Site:
    """A use of `module`.`name`. `called`: a call, with these keywords; `indirect`: an argument is an .ap view with an
    address from memory."""

    module: str
    name: str
    line: int
    called: bool
    keywords: tuple[str, ...] = ()
    indirect: bool = False

    @property
    def short(self) -> str:
        return f"{_SHORT[self.module]}.{self.name}"


@dataclass(slots=True)
class Count:
    """`calls`: (call, kind, reason) and how many; `names`: those that are used without a call and are not there;
    `whole`: files that miss no call and no name; `unread`: files that are no Python."""

    calls: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    files: int = 0
    whole: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def of(self, *kinds: str) -> int:
        """Call sites of these kinds."""
        return sum(n for (_, kind, _), n in self.calls.items() if kind in kinds)

    def share(self, *without: str) -> float:
        """Of the call sites that need one core, and are of no kind in `without`: what is there."""
        there = self.of(*(kind for kind in HERE if kind not in without))
        return there / max(1, there + self.of("missing", "argument"))


def _known(dotted: str) -> str:
    """The module of NKI that a dotted name is; empty if it is none. neuronxcc.nki is nki."""
    name = dotted.removeprefix("neuronxcc.")
    return name if name == "nki" or name in _SHORT else ""


def _aliases(tree: ast.AST) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Local names of modules, and of what is imported from them."""
    modules_by: dict[str, str] = {}
    names_by: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if known := _known(one.name):
                    local = one.asname or one.name.split(".")[0]
                    modules_by[local] = known if one.asname else local
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            base = _known(node.module)
            for one in node.names if base or node.module == "neuronxcc" else ():
                local = one.asname or one.name
                if whole := _known(f"{node.module}.{one.name}"):
                    modules_by[local] = whole
                elif base in _SHORT:
                    names_by[local] = (base, one.name)
    return modules_by, names_by


def _dotted(node: ast.expr) -> list[str]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *reversed(parts)]


def _indirect(call: ast.Call) -> bool:
    """Whether an argument of a call is `.ap(...)` with an address from memory."""
    views = (n for n in ast.walk(call) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return any(n.func.attr == "ap" and any(k.arg in _INDIRECT for k in n.keywords) for n in views)  # type: ignore[attr-defined]


def sites(source: str) -> Iterator[Site]:
    """Uses of nki.isa, nki.language and nki.collectives in a text. SyntaxError if it is no Python."""
    tree = ast.parse(source)
    modules_by, names_by = _aliases(tree)

    def used(node: ast.expr) -> tuple[str, str] | None:
        first, *rest = _dotted(node)
        if not rest:
            return names_by.get(first)
        dotted = _known(modules_by.get(first, "")) or modules_by.get(first, "")
        for at in range(len(rest)):
            if dotted in _SHORT:
                return dotted, rest[at]
            dotted = f"{dotted}.{rest[at]}".removeprefix("neuronxcc.")
        return None

    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Attribute, ast.Name)) or not isinstance(node.ctx, ast.Load):
            continue
        found = used(node)
        call = calls.get(id(node))
        if found is None or (call is None and len(_dotted(node)) > 1 and used(node.value) is not None):  # type: ignore[union-attr]
            continue
        if call is None:
            yield Site(*found, node.lineno, False)
        else:
            words = tuple(one.arg for one in call.keywords if one.arg)
            yield Site(*found, node.lineno, True, words, _indirect(call))


def kind_of(site: Site) -> tuple[str, str]:
    """(kind, reason) of a call site, as the table of docs/nki.md has it."""
    if site.module == "nki.collectives":
        return "several cores", SEVERAL_CORES
    there = CALLS[site.module].get(site.name)
    if there is None:
        if site.name in modules.BUILT_HERE[site.module]:
            return "built", ""
        why = MISSING[site.module].get(site.name, "not looked at")
        return ("several cores" if why == SEVERAL_CORES else "missing"), why
    parameters = inspect.signature(there.function).parameters
    if not any(p.kind == p.VAR_KEYWORD for p in parameters.values()):
        taken = {*parameters, *(("name",) if site.module == "nki.isa" else ())}
        if wrong := [n for n in site.keywords if n not in taken]:
            return "argument", f"no {wrong[0]}="
    if site.indirect:
        return "argument", "no addresses from memory (scalar_offset, vector_offset)"
    return there.kind, ""


def counted(folder: Path) -> Count:
    """All Python files below a folder. KernelError if there is no folder, or no call site in it."""
    if not folder.is_dir():
        raise KernelError(f"there is no folder {folder}")
    found, known = Count(), modules.names_of(named("tiny"))
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        try:
            here = list(sites(path.read_text(encoding="utf-8")))
        except (SyntaxError, UnicodeDecodeError):
            found.unread.append(name)
            continue
        kinds = [(site, *kind_of(site)) for site in here if site.called]
        if not kinds:
            continue
        absent = [s.short for s in here if not s.called and s.name not in known.get(s.module, ())]
        found.files += 1
        found.names.update(absent)
        found.calls.update((site.short, kind, why) for site, kind, why in kinds)
        if not absent and all(kind in HERE for _, kind, _ in kinds):
            found.whole.append(name)
    if not found.files:
        raise KernelError(f"no Python file below {folder} calls nki.isa or nki.language")
    return found
