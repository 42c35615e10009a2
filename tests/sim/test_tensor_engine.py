"""Launchers of the tensor engine's bench. The array's own benches are in test_tensor.py."""

import pytest

from rtl.tensor.engine import TensorEngine
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

BENCH = "verif.benches.tensor.bench_engine"
NATIVE = {"form": "native"}


@pytest.mark.parametrize("seed", SEEDS)
def test_tensor_engine(seed: int) -> None:
    must_pass("tensor_engine", BENCH, seed, options=NATIVE)


@pytest.mark.parametrize("fault", faults_of(TensorEngine))
def test_tensor_engine_fault_is_noticed(fault: int) -> None:
    must_notice("tensor_engine", BENCH, fault, options=NATIVE)
