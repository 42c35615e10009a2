"""A system is a folder: one that lies elsewhere is listed, run, refused and built by no more than being found."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import sim.systems
from sim.build.sources import sources_of
from sim.cli import main
from sim.report.verdict import passed
from sim.run.manifest import Manifest
from sim.run.repeat import configured
from sim.systems.configurations import configurations, restored
from sim.systems.registry import systems

CONFIGS = '''
"""Configurations of a toy."""

import dataclasses

from sim.systems.configurations import Configurations


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToyConfig:
    name: str = "toy1"
    wheels: int = 4
    spokes: tuple[int, ...] = (3, 5)
    hash = "0123456789ab"

    def as_dict(self):
        return dataclasses.asdict(self)


CONFIGURATIONS = Configurations(
    kind="toy",
    type=ToyConfig,
    named={"toy1": ToyConfig()},
    title="A toy",
    about=lambda cfg: f"toy of {cfg.wheels} wheels",
)
'''

SYSTEM = '''
"""A toy as a system."""

import dataclasses
from pathlib import Path

from firmware.workload import Param, parse_params
from sim.build.model import Built
from sim.errors import PlexusError
from sim.systems.system import Offer, System
from sim.systems.zz_toy.configs import CONFIGURATIONS

PARAMS = {"speed": Param(type=int, default=3, doc="turns a second", minimum=1, maximum=9)}


@dataclasses.dataclass
class ToyRun:
    params: dict
    folder: Path


class ToySystem(System):
    name = "toy"

    @property
    def workloads(self):
        return {"roll": Offer(doc="rolls along", params=PARAMS)}

    @property
    def tops(self):
        return {"toy": build}

    def resolve(self, asked):
        if asked.config is not None and asked.config not in CONFIGURATIONS.named:
            raise PlexusError(f"there is no toy {asked.config!r}")
        return ToyRun({"speed": 3} | parse_params(asked.params, PARAMS, "roll"), asked.out or Path("."))

    def run(self, run, console):
        return {"match": run.params["speed"] < 9, "end": "done", "speed": run.params["speed"]}

    def show(self, report, console):
        console.print(f"rolled at {report['speed']}")


def build(asked):
    return Built(top="toy", kind="native", folder=Path("wooden") / asked.config, binary=Path("x"), content="",
                 faults=(), cached=False, seconds={}, cpu_seconds={})


SYSTEM = ToySystem()
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A fourth folder beside core, link and switch."""
    folder = tmp_path / "zz_toy"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""A toy."""\n')
    (folder / "configs.py").write_text(textwrap.dedent(CONFIGS))
    (folder / "system.py").write_text(textwrap.dedent(SYSTEM))
    monkeypatch.setattr(sim.systems, "__path__", [*sim.systems.__path__, str(tmp_path)])
    yield
    for name in [name for name in sys.modules if name.startswith("sim.systems.zz_toy")]:
        del sys.modules[name]
    vars(sim.systems).pop("zz_toy", None)


def said(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> str:
    """What a command prints, which must end with that code."""
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return err if code == 2 else out


def test_toy_is_listed(toy: None, capsys: pytest.CaptureFixture[str]) -> None:
    workloads = said(capsys, ["list", "workloads"]).splitlines()
    assert [line for line in workloads if line.startswith("roll ")][0].split(None, 1)[1] == "rolls along  [speed=3]"
    configs = said(capsys, ["list", "configs"]).splitlines()
    assert any(line.startswith("toy1 ") and "toy of 4 wheels" in line for line in configs)
    assert "turns a second (whole number from 1 to 9)" in said(capsys, ["list", "roll"])


def test_toy_runs(toy: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = said(capsys, ["run", "roll", "-p", "speed=7", "--config", "toy1", "--out", str(tmp_path)])
    assert text.startswith("rolled at 7\n") and "report.json" in text
    assert "rolled at 9" in said(capsys, ["run", "roll", "-p", "speed=9", "--out", str(tmp_path)], code=1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-p", "colour=2"], "roll has no parameter 'colour'; it has speed"),
        (["-p", "speed=10"], "speed must be at most 9, not 10"),
        (["-p", "speed=2", "-p", "speed=3"], "speed is given twice, as 2 and as 3"),
        (["-p", "speed"], "a parameter is written name=value, not 'speed'"),
        (["--config", "small"], "there is no toy 'small'"),
    ],
)
def test_toy_refuses_in_a_sentence(toy: None, capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    text = said(capsys, ["run", "roll", *words], code=2)
    assert says in text and text.count("\n") == 1


def test_toy_is_built(toy: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, ["build", "toy", "--config", "toy1"]) == "built: wooden/toy1\n"


def test_configuration_of_a_toy_comes_back(toy: None, tmp_path: Path) -> None:
    cfg = configured("toy1", ["wheels=6"])
    sent = Manifest(top="toy", config=cfg, folder=tmp_path)
    sent.write(tmp_path / "manifest.json")
    back = Manifest.read(tmp_path / "manifest.json").config
    assert back == cfg and back.spokes == (3, 5) and type(back) is type(cfg)


def test_without_the_folder_nothing_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no workload 'roll'" in said(capsys, ["run", "roll"], code=2)
    assert [one.name for one in systems()] == ["core", "cores", "layers", "link", "switch"]


def test_every_configuration_is_of_one_system() -> None:
    for one in configurations():
        for cfg in one.named.values():
            assert restored(cfg.as_dict()) == cfg
            assert [other.kind for other in configurations() if other.owns(cfg.as_dict())] == [one.kind]


def test_no_two_systems_run_the_same_workload() -> None:
    names = [name for one in systems() for name in one.workloads]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("report", "good"),
    [
        ({"match": True, "end": "done"}, True),
        ({"match": True, "end": "unresolved"}, True),
        ({"match": True, "end": "stuck"}, False),
        ({"match": True, "end": "limit", "faults": []}, False),
        ({"match": True, "end": "done", "faults": [1]}, False),
        ({"match": False, "end": "done"}, False),
    ],
)
def test_pass_rule(report: dict[str, object], good: bool) -> None:
    assert passed(report) is good


def test_kept_verdicts_depend_on_the_systems_that_are_found() -> None:
    files = sources_of(["sim.cli"]).files
    for system in ("core", "link", "switch"):
        assert f"sim/systems/{system}/system.py" in files and f"sim/systems/{system}/configs.py" in files
    alone = sources_of(["sim.run.manifest"]).files
    assert "sim/systems/switch/configs.py" in alone and "sim/systems/switch/system.py" not in alone
