"""A unit that offers the planted faults of its parts gives each number one meaning."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def fault_tables() -> Iterator[tuple[str, str, ast.Dict]]:
    """Module, class and table of every FAULTS that takes over those of parts."""
    for path in sorted((ROOT / "rtl").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for unit in ast.walk(ast.parse(path.read_text())):
            for statement in unit.body if isinstance(unit, ast.ClassDef) else []:
                if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "FAULTS":
                    if isinstance(statement.value, ast.Dict) and None in statement.value.keys:
                        yield module, unit.name, statement.value


TABLES = {f"{module}.{unit}": (module, table) for module, unit, table in fault_tables()}


def evaluated(module: str, node: ast.expr) -> dict[int, str]:
    """A table, or the part of one, as the unit's module would have it."""
    names = vars(importlib.import_module(module))
    return eval(compile(ast.fix_missing_locations(ast.Expression(node)), module, "eval"), dict(names))


@pytest.mark.parametrize("unit", TABLES)
def test_no_number_means_two_faults(unit: str) -> None:
    """A later part would silently hide the fault of an earlier one, and no bench would ask for it."""
    module, table = TABLES[unit]
    known: dict[int, str] = {}
    for key, value in zip(table.keys, table.values, strict=True):
        part = evaluated(module, value) if key is None else evaluated(module, ast.Dict([key], [value]))
        for number, text in part.items():
            assert known.setdefault(number, text) == text, f"{unit}: fault {number} is {known[number]!r} and {text!r}"
