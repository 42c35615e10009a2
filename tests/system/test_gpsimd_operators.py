"""Operators of the GPSIMD library on RTL: every bit as the golden machine leaves it and as NumPy means it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernels.gpsimd_operators import PROGRAMS, operator_program
from rtl.contract.config import Config, load, named
from sim.cli import main
from sim.run.checking import checked
from sim.run.meaning import meant, with_meaning
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.checks.gpsimd_operations import OPERATIONS, random_operation
from verif.golden.gpsimd import operators

pytestmark = pytest.mark.sim
TINY, SMALL = (load(name, ["gpsimd.vectors=false"]) for name in ("tiny", "small"))
VECTORS, SMALL_VECTORS = named("tiny"), named("small")


def all_agree(operator: str, cfg: Config, seeds: range) -> None:
    binary = build_core(cfg).binary
    for seed in seeds:
        program = operator_program(cfg, random_operation(operator, cfg, seed))
        image = build_image(program)
        with VerilatedDevice(cfg, binary) as device:
            device.load(image)
            result = device.run()
        assert result.end == "done" and program.meaning is not None, f"seed {seed}"
        found = with_meaning(checked(cfg, image, result), result.outputs, program.meaning)
        assert found.match, f"seed {seed}: {found.first}"


@pytest.mark.parametrize("cfg", [TINY, VECTORS], ids=["scalar", "vectors"])
@pytest.mark.parametrize("operator", sorted(OPERATIONS))
def test_rtl_golden_and_numpy_agree(operator: str, cfg: Config) -> None:
    all_agree(operator, cfg, range(6))


@pytest.mark.regress
@pytest.mark.parametrize(
    "cfg", [TINY, SMALL, VECTORS, SMALL_VECTORS], ids=lambda c: f"{c.name}{'v' * c.gpsimd.vectors}"
)
@pytest.mark.parametrize("operator", sorted(OPERATIONS))
def test_rtl_golden_and_numpy_agree_many_times(operator: str, cfg: Config) -> None:
    all_agree(operator, cfg, range(1000, 1060))


def run(tmp_path: Path, *params: str, exit_code: int = 0, sets: Sequence[str] = ()) -> dict[str, Any]:
    asked = [word for param in params for word in ("-p", param)] + [word for one in sets for word in ("--set", one)]
    assert main(["run", "gpsimd", "--config", "tiny", *asked, "--out", str(tmp_path)]) == exit_code
    return json.loads((tmp_path / "report.json").read_text())


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_each_program_runs_with_its_defaults(tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str) -> None:
    small = () if program == "route" else ("columns=40",)
    report = run(tmp_path, f"program={program}", *small, f"out={tmp_path / 'out.npz'}")
    assert report["match"] is True and report["metrics"]["operator"] == program
    metrics = report["metrics"]
    assert f"and is what NumPy says of {program}" in " ".join(capsys.readouterr().out.split())
    assert metrics["gpsimd_cycles"] > metrics["gpsimd_port_cycles"] > 0 and "gpsimd_bus_cycles" not in metrics
    with np.load(tmp_path / "out.npz") as found:
        assert found.files


@pytest.mark.parametrize("params", [("program=partition_reduce", "op=min"), ("program=gather", "mode=partitions")])
def test_more_columns_than_a_piece_of_shared_memory(tmp_path: Path, params: tuple[str, ...]) -> None:
    report = run(tmp_path, *params, "columns=550")
    assert report["match"] is True


def test_a_program_of_cores_without_vectors(tmp_path: Path) -> None:
    report = run(tmp_path, "program=affine_select", "columns=24", sets=("gpsimd.vectors=false",))
    metrics = report["metrics"]
    assert report["match"] is True
    assert metrics["gpsimd_cycles"] > metrics["gpsimd_bus_cycles"] >= metrics["gpsimd_port_cycles"]


def test_a_wrong_meaning_is_a_mismatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The golden machine executes the same instructions, so it agrees; the run fails all the same."""
    right = operators.MEANINGS["iota"]

    def wrong(**given: Any) -> dict[str, np.ndarray]:
        found = right(**given)
        found["dst"][3, 5] ^= 1
        return found

    monkeypatch.setitem(operators.MEANINGS, "iota", wrong)
    report = run(tmp_path, "program=iota", "columns=9", exit_code=1)
    assert report["match"] is False and report["mismatch"]["index"] == [3, 5]


def test_an_unknown_program_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "gpsimd", "--config", "tiny", "-p", "program=gahter", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "there is no program 'gahter'; the nearest is 'gather'" in said and said.count("\n") == 1


def test_what_a_program_means_has_the_shapes_of_its_outputs() -> None:
    for operator in OPERATIONS:
        of = random_operation(operator, TINY, 2)
        meaning = operator_program(TINY, of).meaning
        assert meaning is not None
        assert {name: bits.shape for name, bits in meant(meaning).items()} == {
            name: shape[:2] for name, shape in of.outputs.items()
        }
