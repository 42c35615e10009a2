"""Imports run one way: rtl <- firmware <- sim <- verif <- tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("rtl", "firmware", "sim", "verif")


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Names of the modules that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)} imports relatively; write the whole name"
            names.add(node.module or "")
    return names


def test_import_linter_is_content() -> None:
    program = "from importlinter.cli import lint_imports_command as c; c()"
    result = subprocess.run(
        [sys.executable, "-c", program, "--cache-dir", str(ROOT / "build" / "import_linter")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [
        ("rtl/contract", {"rtl"}),
        ("rtl", {"rtl", "amaranth"}),
        ("verif/golden", {"rtl", "verif", "numpy", "ml_dtypes"}),
    ],
)
def test_room_uses_only_what_it_may(folder: str, allowed: set[str]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(folder)
        for name in sorted(imported(path))
        if name.split(".")[0] not in allowed | sys.stdlib_module_names
    ]
    assert not wrong, "\n".join(wrong)


def test_golden_models_know_only_the_contract() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("verif/golden")
        for name in sorted(imported(path))
        if name.startswith(("rtl", "verif")) and not name.startswith(("rtl.contract", "verif.golden"))
    ]
    assert not wrong, "\n".join(wrong)


def test_nobody_imports_tests() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for room in (*ROOMS, "tests")
        for path in modules(room)
        if any(name.split(".")[0] == "tests" for name in imported(path))
    ]
    assert not wrong, f"these import from tests: {', '.join(wrong)}"


def test_plexus_names_what_sim_offers_and_no_room_imports_it() -> None:
    """A module at the top, which import-linter does not follow."""
    wrong = {name for name in imported(ROOT / "plexus.py") if name.split(".")[0] not in ("sim", "firmware", "rtl")}
    assert not wrong, f"plexus.py imports {', '.join(sorted(wrong))}"
    users = [str(p.relative_to(ROOT)) for room in ROOMS for p in modules(room) if "plexus" in imported(p)]
    assert not users, f"these import plexus: {', '.join(users)}"


def test_the_packages_are_those_of_this_repository() -> None:
    for room in (*ROOMS, "plexus"):
        module = __import__(room)
        assert Path(str(module.__file__)).is_relative_to(ROOT), f"{room} comes from {module.__file__}"
