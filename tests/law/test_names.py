"""The mirror: rtl/<area>/[<room>/]<unit>.py <-> verif/benches/<area>/bench_<unit>.py, which declares its own runs.

A unit that another bench covers has a row [[exception]] in verif/plan/testplan.toml with its reason.
"""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAN = tomllib.loads((ROOT / "verif" / "plan" / "testplan.toml").read_text())
EXCEPTIONS = {unit: row for row in PLAN["exception"] for unit in row["units"]}


FRAMES = ("Component", "EngineFrame", "ClockedEngine")
"""What a component may inherit from."""


def is_component(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and any(f in ast.unparse(base) for base in node.bases for f in FRAMES)


def units() -> list[Path]:
    """Files under rtl/ that hold a public component."""
    found = []
    for path in sorted((ROOT / "rtl").rglob("*.py")):
        body = ast.parse(path.read_text()).body
        if any(is_component(n) and not n.name.startswith("_") for n in body):  # type: ignore[attr-defined]
            found.append(path)
    return found


def fault(path: Path) -> str:
    """What is wrong with a unit's place in the mirror; empty if nothing is."""
    name = str(path.relative_to(ROOT))
    inside = path.relative_to(ROOT / "rtl").parts
    area = inside[0] if len(inside) > 1 else "core"
    bench = ROOT / "verif" / "benches" / area / f"bench_{path.stem}.py"
    row = EXCEPTIONS.get(name)
    if row is None:
        return "" if bench.is_file() else f"{name} needs {bench.relative_to(ROOT)}, or an exception with a reason"
    if bench.exists():
        return f"{name} has its own bench: remove its exception"
    missing = [other for other in row["covered_by"] if not (ROOT / other).is_file()]
    if missing or not row["covered_by"]:
        return f"{name} is covered by {', '.join(missing) or 'nothing'}, which does not exist"
    return "" if row["reason"] else f"{name}: an exception needs a reason"


def complain(faults: list[str]) -> None:
    if any(faults):
        pytest.fail("\n".join(f for f in faults if f), pytrace=False)


def test_every_unit_has_a_bench_or_a_reason() -> None:
    complain([fault(path) for path in units()])


def test_exceptions_name_units() -> None:
    gone = [unit for unit in EXCEPTIONS if not (ROOT / unit).is_file()]
    assert not gone, f"these exceptions name no file: {', '.join(gone)}"


def test_modules_say_what_they_offer() -> None:
    wrong = []
    for path in sorted((ROOT / "rtl").rglob("*.py")):
        body = ast.parse(path.read_text()).body
        names = {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        if path.name != "__init__.py" and "__all__" not in names:
            wrong.append(str(path.relative_to(ROOT)))
    assert not wrong, f"no __all__ in {', '.join(wrong)}"


def test_every_room_says_what_is_in_it() -> None:
    rooms = [p for top in ("rtl", "firmware", "sim", "verif") for p in sorted((ROOT / top).rglob("__init__.py"))]
    silent = [str(p.relative_to(ROOT)) for p in rooms if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent, f"no docstring in {', '.join(silent)}"
    without = {d.parent for top in ("rtl", "firmware", "sim", "verif") for d in (ROOT / top).rglob("*.py")}
    missing = [str(d.relative_to(ROOT)) for d in sorted(without) if not (d / "__init__.py").exists()]
    assert not missing, f"no __init__.py in {', '.join(missing)}"
