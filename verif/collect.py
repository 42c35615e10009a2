"""Every run that the benches declare: one of each seed, and one of each planted fault that must be noticed.

Declarations are read without a simulator. A bench may ask at import what it is run on, which only a simulator knows,
so of its file nothing is executed but RUNS and what it names.
"""

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sim.errors import PlexusError
from sim.run.faults import exists, own_faults
from sim.run.repeat import bench_modules, settings_of, short_name
from sim.toolchain import ROOT
from verif.bench import EVERY, REST, Fault, Run
from verif.launch import configuration

__all__ = ["Declared", "Item", "declarations", "declared_in", "items", "refusals"]


@dataclass(frozen=True)
class Declared:
    """A `Run` of a bench."""

    bench: str
    run: Run

    @cached_property
    def build(self) -> str:
        """What is built, in words: the same words are the same model."""
        base, settings = settings_of(configuration(self.run.config))
        options = [f"{key}={json.dumps(value)}" for key, value in sorted(self.run.options.items())]
        words = [self.run.top, base, *settings, *options]
        return " ".join(words if self.run.planted else [*words, "unplanted"])

    def __str__(self) -> str:
        area, _, unit = short_name(self.bench).partition(".")
        return f"{area}/{unit} {self.build.removeprefix(f'{unit} ')}"


@dataclass(frozen=True)
class Item:
    """A run of a bench: of `seed`, or with the planted fault `plant`, which `fault` asks for."""

    declared: Declared
    seed: int = 1
    plant: str = ""
    fault: Fault = Fault("")

    @property
    def group(self) -> str:
        """Items of a group share a model. Without the signs that pytest-xdist looks for."""
        return re.sub(r"[^\w.=:,-]+", "_", self.declared.build)

    def __str__(self) -> str:
        return f'{self.declared} "{self.plant}"' if self.plant else f"{self.declared} seed {self.seed}"


def declared_in(text: str) -> tuple[Run, ...]:
    """RUNS of a bench of this source; () if it has none."""
    needed = {"RUNS"}
    statements: list[ast.stmt] = []
    for statement in reversed(ast.parse(text).body):
        if _bound(statement) & needed:
            statements.insert(0, statement)
            needed |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    space: dict[str, Any] = {"__name__": "declaration"}
    exec(compile(ast.Module(statements, []), "declaration", "exec"), space)
    return space.get("RUNS", ())


def _bound(statement: ast.stmt) -> set[str]:
    """Names that a statement at the top level of a module gives a meaning."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def declarations() -> list[Declared]:
    """All there are under verif/benches. Errors: PlexusError for a bench without any, or with one that is wrong."""
    found: list[Declared] = []
    for bench in bench_modules().values():
        file = f"{bench.replace('.', '/')}.py"
        try:
            runs = declared_in((ROOT / file).read_text())
        except Exception as error:
            raise PlexusError(f"RUNS of {file} cannot be read: {type(error).__name__}: {error}") from error
        if not runs:
            raise PlexusError(f"{file} declares no run: RUNS = (Run(...), ...) at its top level, see verif/bench.py")
        found += [Declared(bench, run) for run in runs]
    return found


def items(found: Iterable[Declared]) -> tuple[list[Item], list[Item]]:
    """Runs that must be green, and runs that must notice a fault. Errors: PlexusError, a sentence a refusal."""
    found = list(found)
    wrong = list(refusals(found))
    if wrong:
        raise PlexusError("\n".join(wrong))
    green = [Item(one, seed) for one in found for seed in one.run.seeds]
    named = _named(found)
    return green, [item for one in found for item in _noticed(one, named)]


def _named(found: Iterable[Declared]) -> Mapping[str, set[str]]:
    """Of each top the faults that a declaration names."""
    named: dict[str, set[str]] = defaultdict(set)
    for one in found:
        named[one.run.top] |= {fault.name for fault in one.run.wanted}
    return named


def _noticed(one: Declared, named: Mapping[str, set[str]]) -> Iterator[Item]:
    """The runs with a fault that a declaration asks for."""
    top = one.run.top
    for fault in one.run.wanted:
        if fault.name not in (EVERY, REST):
            yield Item(one, plant=fault.name, fault=fault)
            continue
        for name in own_faults(top):
            if fault.name == EVERY or name not in named[top]:
                yield Item(one, plant=name, fault=fault)


def refusals(found: list[Declared]) -> Iterator[str]:
    """What is wrong with declarations, a sentence each."""
    yield from _unknown(found)
    green = {(one.bench, one.build) for one in found if one.run.seeds}
    named = _named(found)
    noticed = [item for one in found for item in _noticed(one, named)]
    for one in found:
        if one.run.wanted and one.run.regress:
            yield f"{one} must notice planted faults, which make test plants: leave regress=True out"
        if one.run.wanted and not one.run.planted:
            yield f"{one} has planted faults to notice on a build without them: leave planted=False out"
        elif one.run.wanted and (one.bench, one.build) not in green:
            yield f"{one} must notice planted faults and is never green without them: give it a seed"
    for bench in sorted({one.bench for one in found} - {one.bench for one in found if not one.run.regress}):
        yield f"{short_name(bench)} declares runs for make regress only, so that make test has none of it"
    runs = Counter(str(Item(one, seed)) for one in found for seed in one.run.seeds)
    runs.update(f"{item} {item.fault.by or ''}" for item in noticed)
    for name, count in runs.items():
        if count > 1:
            yield f"{name.strip()} is declared {count} times"
    claimed = {item.plant for item in noticed}
    for top in sorted({one.run.top for one in found}):
        for name in own_faults(top):
            if name not in claimed:
                yield f'no bench must notice planted fault "{name}" of {top}'


def _unknown(found: Iterable[Declared]) -> Iterator[str]:
    """Faults that a declaration names and no unit has. Whether the top has it is known when it is built."""
    for one in found:
        for fault in one.run.wanted:
            if fault.name in (EVERY, REST):
                if not own_faults(one.run.top):
                    yield f"{one} must notice planted faults, and {one.run.top} has none of its own"
            elif not exists(fault.name):
                yield f"{one} must notice {fault.name!r}, which is no planted fault of any unit"
