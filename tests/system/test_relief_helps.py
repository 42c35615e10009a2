"""What a report says would relieve a run does: with its settings the run takes fewer cycles."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rtl.contract.config import Config, load
from sim.systems.core.run import Run, run_workload

pytestmark = pytest.mark.sim

NARROW, FAR = "hbm.bytes_per_cycle=8", "hbm.latency_ns=400"


def report(workload: str, params: Mapping[str, Any], cfg: Config, out: Path) -> dict[str, Any]:
    return run_workload(Run(workload=workload, params=params, cfg=cfg, out=out), Console(quiet=True))


@pytest.mark.parametrize(
    ("workload", "params", "setting", "says"),
    [
        ("dma", {"rows": 32, "row_bytes": 4096}, NARROW, ["hbm.bytes_per_cycle=16"]),
        ("dma", {"rows": 32, "row_bytes": 2048, "direction": "both"}, NARROW, ["hbm.bytes_per_cycle=16"]),
        ("gemm", {"m": 8, "k": 256, "n": 256}, NARROW, ["hbm.bytes_per_cycle=16"]),
        ("gemm", {"m": 8, "k": 256, "n": 256, "sparsity": "4:16"}, NARROW, ["hbm.bytes_per_cycle=16"]),
        ("softmax", {"rows": 32, "columns": 64}, NARROW, ["hbm.bytes_per_cycle=16"]),
        ("dma", {"rows": 4, "row_bytes": 256}, FAR, ["hbm.latency_ns=200"]),
    ],
    ids=str,
)  # settings that need no other model
def test_relief_helps(workload: str, params: Mapping[str, Any], setting: str, says: list[str], tmp_path: Path) -> None:
    before = report(workload, params, load("tiny", [setting]), tmp_path)
    assert before["relief_set"] == says
    after = report(workload, params, load("tiny", says), tmp_path)
    assert after["match"] and after["cycles"] < 0.95 * before["cycles"]


def test_what_nothing_relieves(tmp_path: Path) -> None:
    """Beats fill the largest array that tiny's partitions allow."""
    assert report("gemm", {"m": 64, "k": 64, "n": 64}, load("tiny"), tmp_path)["relief_set"] == []
