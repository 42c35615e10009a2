"""How fast the vector and scalar engines are in the whole core: rates of exp, softmax against its bound."""

from pathlib import Path

import pytest
from rich.console import Console

from firmware.workloads import find_workload
from rtl.contract.config import named
from sim.figures.engines import exp_rate, softmax_window
from sim.figures.rows import Row
from sim.figures.transpose import transpose_cost
from sim.report.verdict import passed
from sim.systems.core.run import Run, run_workload

TINY = named("tiny")


@pytest.mark.parametrize(
    ("engine", "given", "made", "rate"),
    [
        ("vector", "bf16", "bf16", 4),
        ("vector", "e4m3fn", "fp16", 4),
        ("vector", "fp32", "bf16", 2),
        ("vector", "bf16", "fp32", 2),
        ("vector", "fp32", "fp32", 2),
        ("scalar", "bf16", "bf16", 2),
        ("scalar", "fp32", "fp32", 1),
    ],
)
def test_exp_keeps_its_rate(engine: str, given: str, made: str, rate: int) -> None:
    measured, same = exp_rate(TINY, engine, (given, made))
    assert same
    assert measured == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_softmax_stays_near_its_bound(dtype: str, tmp_path: Path) -> None:
    params = find_workload("softmax").complete({"columns": 512, "dtype": dtype})
    report = run_workload(Run(workload="softmax", params=params, cfg=TINY, out=tmp_path), Console(quiet=True))
    assert passed(report)
    window, bound = softmax_window(TINY, params, report)
    assert bound == {"bf16": 576, "fp32": 1344}[dtype]
    assert window <= 1.25 * bound


def test_transposes_beside_matmuls_cost_nothing() -> None:
    """Streams of 64 columns: shorter ones wait for instructions at this size."""
    without, beside, same = transpose_cost(TINY, TINY.tensor.moving_max, 24)
    assert same
    assert beside == without, f"{without} cycles without, {beside} with transposes"


@pytest.mark.parametrize(
    ("value", "target", "ok"), [(0.8, ">= 0.80", True), (0.79, ">= 0.80", False), (1.2, "<= 1.25", True), (9, "", True)]
)
def test_a_figure_knows_its_target(value: float, target: str, ok: bool) -> None:
    assert Row(name="n", what="w", value=value, unit="x", target=target).ok is ok
