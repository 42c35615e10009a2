"""The lock files: exact, with hashes, and without the name of any host."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-models.lock")


def entries(lock: str) -> dict[str, str]:
    """Package and version of every entry."""
    found = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / lock).read_text(), re.M)
    return {normal(name): version for name, version in found}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_names_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text
    assert "@ " not in text


@pytest.mark.parametrize("lock", LOCKS)
def test_every_entry_has_a_hash(lock: str) -> None:
    for block in re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip()):
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_lock_holds_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    locked = entries("requirements.lock")
    for requirement in asked:
        match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", requirement)
        assert match, f"{requirement} is not exact"
        assert locked.get(normal(match[1])) == match[2], f"requirements.lock does not hold {requirement}"


def test_every_dependency_has_a_reason() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    bare = [line.strip() for line in lines if re.match(r'\s+"[\w.\[\]-]+==', line) and "#" not in line]
    assert not bare, f"no reason beside {', '.join(bare)}"
