"""What CI systems run, .github/workflows and .ci/run: verbs that the Makefile has, packages that README names, and
nothing else; pinned actions, no rights but to read, an end to every job."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ASKED = {
    "test.yml": {"browser", "test"},
    "nightly.yml": {"regress", "formal", "mutants", "coverage", "soak", "bench", "accuracy"},
}
_MATRIX = re.compile(r"\$\{\{ matrix\.(\w+) \}\}")
_PACKAGES = re.compile(r"apt-get install (?:-\w+ )*([\w.+ -]+)")


def targets(makefile: str) -> set[str]:
    """What `make` can be asked for."""
    return set(re.findall(r"^([a-z][\w-]*):", makefile, re.M))


def commands(workflow: dict[str, Any]) -> list[str]:
    """Every command of every job, once for each value of its matrix."""
    found = []
    for job in workflow["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            names = set(_MATRIX.findall(run := step.get("run", "")))
            assert names <= {*matrix} and len(names) <= 1, f"{run} takes what the matrix has not"
            found += [_MATRIX.sub(value, run) for name in names for value in matrix[name]] or [run]
    return [line.strip() for text in found for line in text.splitlines() if line.strip()]


def verbs(lines: list[str]) -> set[str]:
    """Verbs of make among the commands; what else there is must install packages of the system."""
    found = set()
    for line in lines:
        for part in line.split("&&"):
            match re.sub(r"^(exec|sudo) ", "", part.strip()).split():
                case ["make", *asked]:
                    found |= {word for word in asked if "=" not in word and not word.startswith("-")}
                case ["apt-get", "update" | "install", *_]:
                    pass
                case _:
                    pytest.fail(f"a workflow runs {part.strip()!r}, which is no verb of make")
    return found


def unknown(workflow: dict[str, Any], makefile: str = MAKEFILE) -> set[str]:
    """Verbs that a workflow names and the Makefile does not have."""
    return verbs(commands(workflow)) - targets(makefile)


def parsed(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text())


def test_there_are_workflows_for_every_verb_asked() -> None:
    assert {path.name: verbs(commands(parsed(path))) for path in WORKFLOWS} == ASKED


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_verbs_are_those_of_the_makefile(path: Path) -> None:
    assert not (wrong := unknown(parsed(path))), f"the Makefile has no {', '.join(sorted(wrong))}"


def test_the_script_for_other_systems_runs_a_verb() -> None:
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("exec ")]
    assert verbs(lines) == {"test"} <= targets(MAKEFILE)


def test_a_verb_that_is_gone_is_noticed() -> None:
    (nightly,) = [parsed(path) for path in WORKFLOWS if path.name == "nightly.yml"]
    assert unknown(nightly, MAKEFILE.replace("\nsoak:", "\nsoaked:")) == {"soak"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_packages_are_those_of_the_readme(path: Path) -> None:
    told = _PACKAGES.search((ROOT / "README.md").read_text())
    assert told
    for line in commands(parsed(path)):
        if asked := _PACKAGES.search(line):
            assert asked[1].split() == told[1].split()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_rights_ends_and_pins(path: Path) -> None:
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert "group" in workflow["concurrency"]
    for name, job in workflow["jobs"].items():
        assert 0 < job["timeout-minutes"] <= 360 and "permissions" not in job, name
        assert job["runs-on"] == "ubuntu-latest" and job["env"]["CI"] == "true", name
    used = re.findall(r"uses: (\S+)(.*)", path.read_text())
    pinned = re.compile(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    wrong = [action + note for action, note in used if not pinned.fullmatch(action + note)]
    assert used and not wrong, f"an action is pinned by its commit, with its version beside it: {', '.join(wrong)}"
    checkouts = [s for job in workflow["jobs"].values() for s in job["steps"] if "checkout" in s.get("uses", "")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
