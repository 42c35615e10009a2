"""A planted fault counts as noticed only where the same build and bench are green without it.

Every launcher is called with a runner that only writes down what it is asked for, so nothing is built.
"""

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import verif.launch
from rtl.contract.switch_config import AnyConfig
from sim.run.runner import Case, Verdict

ROOT = Path(__file__).resolve().parents[2]
LAUNCHERS = sorted(
    path
    for folder in ("sim", "system")
    for path in (ROOT / "tests" / folder).glob("test_*.py")
    if "from verif.launch import" in path.read_text() and path.name != "test_runner.py"  # which tests `must_notice`
)


@dataclass(frozen=True)
class Asked:
    """A run that a launcher asks for."""

    top: str
    bench: str
    cfg: AnyConfig
    options: str
    plant: int
    planted: bool
    testcase: str | None

    @property
    def build(self) -> tuple[str, AnyConfig, str]:
        return self.top, self.cfg, self.options

    def __str__(self) -> str:
        case = f", only {self.testcase}" if self.testcase else ""
        return f"fault {self.plant} of {self.top} on {self.cfg.name} {self.options} with {self.bench}{case}"


class Recorder:
    """Stands in for `run_bench`: what is asked for, and the answer that the launcher hopes for."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def __call__(
        self,
        top: str,
        bench: str,
        cfg: AnyConfig,
        *,
        plant: int = 0,
        planted: bool = False,
        options: Mapping[str, Any] | None = None,
        testcase: str | None = None,
        **_: object,
    ) -> Verdict:
        self.asked.append(Asked(top, bench, cfg, str(sorted((options or {}).items())), plant, planted, testcase))
        failed = Case("a", 0, "AssertionError: 1", "AssertionError", "verif/benches/")
        case = failed if plant else Case("a", 0, "")
        return Verdict(bench=bench, seed=1, plant=plant, cases=(case,), folder=Path())


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"launchers_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls(function: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """The arguments of every case of a test, as pytest's `parametrize` would give them."""
    axes = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names = [n.strip() for n in mark.args[0].split(",")] if isinstance(mark.args[0], str) else mark.args[0]
            rows = [(row,) if len(names) == 1 else row for row in mark.args[1]]
            axes.append([dict(zip(names, row, strict=True)) for row in rows])
    for choice in product(*axes):
        yield {name: value for part in choice for name, value in part.items()}


def runs_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """Everything that the launchers of a file ask for."""
    recorder = Recorder()
    monkeypatch.setattr(verif.launch, "run_bench", recorder)
    module = imported(path)
    for name, function in vars(module).items():
        if name.startswith("test_") and {"must_pass", "must_notice"} & set(function.__code__.co_names):
            for arguments in calls(function):
                function(**arguments)
    return recorder.asked


@pytest.mark.parametrize("path", LAUNCHERS, ids=lambda p: p.stem)
def test_a_planted_fault_runs_where_the_bench_is_green(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the same build, with the same tests of the same bench."""
    asked = runs_of(path, monkeypatch)
    green = {(a.build, a.bench, a.testcase) for a in asked if a.planted and not a.plant}
    wrong = [a for a in asked if a.plant and not {(a.build, a.bench, t) for t in (None, a.testcase)} & green]
    assert asked, "no launcher asks for a run"
    assert not wrong, "never green without the fault: " + "; ".join(map(str, wrong))
