"""Two whole cores at two ports exchange tensors and semaphores."""

import pytest

from verif.benches.core.pair_top import PairTop
from verif.launch import faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

BENCH = "verif.benches.core.bench_pair"


def test_two_cores_exchange_tensors() -> None:
    must_pass("core_pair", BENCH, 1)


@pytest.mark.parametrize("fault", faults_of(PairTop))
def test_fault_is_noticed(fault: int) -> None:
    must_notice("core_pair", BENCH, fault)
