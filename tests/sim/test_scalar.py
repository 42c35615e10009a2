"""Launchers of the scalar engine's bench, at the clock ratios of the named configurations and between."""

import pytest

from rtl.contract.config import load
from rtl.scalar.engine import ScalarEngine
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

BENCH = "verif.benches.scalar.bench_engine"


@pytest.mark.parametrize("seed", SEEDS)
def test_scalar_engine_at_half_the_clock(seed: int) -> None:
    must_pass("scalar_engine", BENCH, seed)


@pytest.mark.parametrize("mhz", [960, 1800])
def test_scalar_engine_at_other_ratios(mhz: int) -> None:
    must_pass("scalar_engine", BENCH, SEEDS[0], load("tiny", [f"scalar.clock_mhz={mhz}"]))


HAZARDS = (71, 73)
"""Faults that only a read close behind a write shows: the whole bench, for one program may hold none."""


@pytest.mark.parametrize("fault", faults_of(ScalarEngine))
def test_scalar_engine_fault_is_noticed(fault: int) -> None:
    must_notice("scalar_engine", BENCH, fault, testcase=None if fault in HAZARDS else "a_program_of_everything")
