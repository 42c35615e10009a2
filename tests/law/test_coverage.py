"""Every Coverage of a bench is enforced and in the test plan; every test of a bench runs, or says that it skips.

Read from the source, since a bench is only imported inside a simulator.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHES = ROOT / "verif" / "benches"
OTHERS = [*(ROOT / "verif" / "checks").glob("*.py"), *(ROOT / "tests").rglob("test_*.py")]
"""Tests and checks without a cocotb bench may have a Coverage of their own."""
PLAN = tomllib.loads((ROOT / "verif" / "plan" / "testplan.toml").read_text())
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PLANNED = {name for row in PLAN["feature"] for name in row.get("coverage", [])}


@dataclass(frozen=True)
class Made:
    """A Coverage at module level: where, its variable, and a pattern for each name that it may have."""

    file: Path
    variable: str
    names: tuple[str, ...]


def patterns(name: ast.expr) -> Iterator[str]:
    """What the first argument of Coverage may be."""
    if isinstance(name, ast.IfExp):
        yield from patterns(name.body)
        yield from patterns(name.orelse)
    elif isinstance(name, ast.JoinedStr):
        yield "".join(re.escape(str(v.value)) if isinstance(v, ast.Constant) else "[a-z0-9_]+" for v in name.values)
    else:
        yield re.escape(ast.literal_eval(name))


def calls_of(node: ast.AST) -> list[ast.Call]:
    """Calls of Coverage in there."""
    return [n for n in ast.walk(node) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "Coverage"]


def made() -> list[Made]:
    found = []
    for file in sorted([*BENCHES.rglob("*.py"), *OTHERS]):
        body = ast.parse(file.read_text()).body
        functions = [n for n in body if isinstance(n, ast.FunctionDef)]
        makers = {f.name: f for f in functions if f.returns and ast.unparse(f.returns) == "Coverage"}
        for node in body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                function = getattr(node.value.func, "id", "")
                for call in calls_of(makers.get(function, node.value)):
                    found.append(Made(file, ast.unparse(node.targets[0]), tuple(patterns(call.args[0]))))
    return found


MADE = made()


def cocotb_tests(tree: ast.Module) -> list[ast.AsyncFunctionDef]:
    """The cocotb tests of a bench, in order."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.AsyncFunctionDef)
        and any(ast.unparse(d).startswith("cocotb.test") for d in node.decorator_list)
    ]


def known_in(file: Path, tree: ast.Module) -> dict[str, Made]:
    """Coverages that a bench defines or imports, by the name it knows them by."""
    known = {m.variable: m for m in MADE if m.file == file}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            source = ROOT / (node.module.replace(".", "/") + ".py")
            names = {alias.name: alias.asname or alias.name for alias in node.names}
            known |= {names[m.variable]: m for m in MADE if m.file == source and m.variable in names}
    return known


def mentions(node: ast.AST, variable: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == variable for n in ast.walk(node))


def enforced(test: ast.AST, variable: str) -> bool:
    return f"{variable}.require_all()" in {ast.unparse(n) for n in ast.walk(test) if isinstance(n, ast.Call)}


def laggards(file: Path) -> list[str]:
    """Coverages that a bench uses and does not enforce at its end."""
    tree = ast.parse(file.read_text())
    wrong = []
    for variable in known_in(file, tree):
        using = [t for t in cocotb_tests(tree) if mentions(t, variable)]
        if not using and not mentions(tree, variable):
            continue  # imported for its neighbours
        if not using or not enforced(using[-1], variable):
            wrong.append(f"{file.relative_to(ROOT)}: {variable}.require_all() is not in the last test that uses it")
    return wrong


@pytest.mark.parametrize("file", sorted(BENCHES.glob("*/bench_*.py")), ids=lambda f: f.stem)
def test_a_bench_enforces_the_coverage_that_it_uses(file: Path) -> None:
    assert not laggards(file)


def test_every_coverage_is_enforced_somewhere() -> None:
    held = {m for m in MADE if m.file in OTHERS and enforced(ast.parse(m.file.read_text()), m.variable)}
    for file in BENCHES.glob("*/bench_*.py"):
        tree = ast.parse(file.read_text())
        held |= {m for v, m in known_in(file, tree).items() if any(enforced(t, v) for t in cocotb_tests(tree))}
    assert not [m for m in MADE if m not in held]


def test_every_coverage_is_in_the_plan() -> None:
    gone = [n for m in MADE for n in m.names if not any(re.fullmatch(n, planned) for planned in PLANNED)]
    assert not gone, f"no feature names {', '.join(gone)}"


@pytest.mark.parametrize("row", [r for r in PLAN["feature"] if "coverage" in r], ids=lambda r: r["name"])
def test_a_feature_has_the_coverage_of_its_benches(row: dict) -> None:
    files = [*row.get("bench", []), *(test.partition("::")[0] for test in row.get("tests", []))]
    benches = [ROOT / file for file in files]
    there = [m for file in benches for m in known_in(file, ast.parse(file.read_text())).values()]
    gone = [name for name in row["coverage"] if not any(re.fullmatch(n, name) for m in there for n in m.names)]
    assert not gone, f"no bench of the row has the coverage {', '.join(gone)}"


@pytest.mark.parametrize("file", sorted(BENCHES.glob("*/bench_*.py")), ids=lambda f: f.stem)
def test_no_test_returns_early(file: Path) -> None:
    """A test that does not apply is `skip`, so that it has a name in the results and is counted."""
    early = []
    for test in cocotb_tests(ast.parse(file.read_text())):
        helpers = [n for n in ast.walk(test) if isinstance(n, FUNCTIONS) and n is not test]
        inner = {n for helper in helpers for n in ast.walk(helper)}
        returns = [n for n in ast.walk(test) if isinstance(n, ast.Return) and n not in inner]
        early += [f"{test.name}, line {n.lineno}" for n in returns]
    assert not early
