"""Launchers of the benches of rtl/base."""

import pytest

from rtl.base.fifo import Fifo, RamFifo
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

FIFO = "verif.benches.base.bench_fifo"
SHAPE = {"shape": 16, "depth": 4}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("top", ["fifo", "ram_fifo"])
def test_fifo(top: str, seed: int) -> None:
    must_pass(top, FIFO, seed, options=SHAPE)


@pytest.mark.parametrize("fault", faults_of(Fifo))
def test_fifo_fault_is_noticed(fault: int) -> None:
    must_notice("fifo", FIFO, fault, options=SHAPE)


@pytest.mark.parametrize("fault", faults_of(RamFifo))
def test_ram_fifo_fault_is_noticed(fault: int) -> None:
    must_notice("ram_fifo", FIFO, fault, options=SHAPE)
