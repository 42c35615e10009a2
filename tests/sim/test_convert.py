"""Launchers of the conversion's bench."""

import pytest

from rtl.numeric.convert import Convert
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

BENCH = "verif.benches.numeric.bench_convert"


@pytest.mark.parametrize("seed", SEEDS)
def test_convert(seed: int) -> None:
    must_pass("convert", BENCH, seed)


@pytest.mark.parametrize("fault", faults_of(Convert))
def test_convert_fault_is_noticed(fault: int) -> None:
    must_notice("convert", BENCH, fault)
