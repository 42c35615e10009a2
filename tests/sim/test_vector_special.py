"""Launchers of the bench of the vector engine's special units."""

import pytest

from rtl.vector.special import SpecialUnits
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

BENCH = "verif.benches.vector.bench_special"
TWO_BLOCKS = {"results": 4, "size": 4}
"""Blocks of four partitions, so that the smallest configuration has two of them; a writer that is soon full."""


@pytest.mark.parametrize("seed", SEEDS)
def test_special_units(seed: int) -> None:
    must_pass("special_units", BENCH, seed, options=TWO_BLOCKS)


def test_special_units_with_one_block() -> None:
    must_pass("special_units", BENCH, SEEDS[0], options={"results": 16})


@pytest.mark.parametrize("fault", faults_of(SpecialUnits))
def test_special_units_fault_is_noticed(fault: int) -> None:
    must_notice("special_units", BENCH, fault, options=TWO_BLOCKS)
