"""NKI kernels on the RTL: every bit that of the golden machine."""

from pathlib import Path

import numpy as np
import pytest

import plexus
from sim.cli import main
from sim.toolchain import ROOT

pytestmark = pytest.mark.sim

EXAMPLES = ROOT / "firmware" / "nki" / "examples"


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("matmul.py:matmul_tiled", (normal(20, 12), normal(20, 70))),
        ("rows.py:add", (normal(20, 100), normal(20, 100, seed=1))),
        ("rows.py:transpose", (normal(20, 30),)),
        ("rows.py:softmax", (normal(20, 100),)),
        ("rows.py:rmsnorm", (normal(20, 100), normal(100))),
        ("fused.py:rmsnorm_matmul", (normal(20, 40), normal(40, 70))),
        ("attention.py:flash_attention", (normal(20, 8), normal(20, 8, seed=1), normal(20, 8, seed=2), True)),
    ],
)
def test_examples_match_the_golden_machine(name: str, arrays: tuple[np.ndarray, ...]) -> None:
    result = plexus.nki.run(str(EXAMPLES / name), *arrays, config="tiny")
    golden = plexus.nki.run(str(EXAMPLES / name), *arrays, config="tiny", device="golden")
    assert result.report["match"] is True and result.cycles
    assert np.array_equal(result.output.view(np.uint8), golden.output.view(np.uint8))


def test_the_command_keeps_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "in.npz", x=normal(20, 100))
    words = ["nki", f"{EXAMPLES}/rows.py:softmax", "--in", str(tmp_path / "in.npz"), "--config", "tiny"]
    assert main([*words, "--out", str(tmp_path / "out.npz"), "--report", str(tmp_path / "run")]) == 0
    assert "MATCH  softmax on tiny" in capsys.readouterr().out
    assert (tmp_path / "out.npz").is_file() and (tmp_path / "run" / "report.json").is_file()
