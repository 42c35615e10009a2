"""Launchers of the benches of rtl/memory and of the RAM cell."""

import pytest

from rtl.contract.config import load
from rtl.memory.psum import Psum
from rtl.memory.sbuf import Sbuf
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

SBUF = "verif.benches.memory.bench_sbuf"
PSUM = "verif.benches.memory.bench_psum"
GROUPS = load("small", ["tensor.cols=8", "tensor.moving_max=64", "psum.banks=4", "psum.bank_bytes=256"])
"""Four row groups in a small PSUM."""
NATIVE = {"form": "native"}
RAM = "verif.benches.base.bench_ram"
RAMS = ({"width": 128, "depth": 6, "granule": 8}, {"width": 96, "depth": 5, "granule": 32}, {"width": 37, "depth": 4})


@pytest.mark.parametrize("seed", SEEDS)
def test_sbuf(seed: int) -> None:
    must_pass("sbuf", SBUF, seed)


@pytest.mark.parametrize("fault", faults_of(Sbuf))
def test_sbuf_fault_is_noticed(fault: int) -> None:
    must_notice("sbuf", SBUF, fault, testcase="movers_wait_no_longer_than_promised")


@pytest.mark.parametrize("seed", SEEDS)
def test_psum(seed: int) -> None:
    must_pass("psum", PSUM, seed, GROUPS, options=NATIVE)


def test_psum_of_one_row_group() -> None:
    must_pass("psum", PSUM, 1, options={"form": "structural"})


@pytest.mark.parametrize("fault", faults_of(Psum))
def test_psum_fault_is_noticed(fault: int) -> None:
    must_notice("psum", PSUM, fault, GROUPS, options=NATIVE)


@pytest.mark.parametrize("options", RAMS, ids=lambda o: f"{o['width']}x{o['depth']}")
def test_ram(options: dict[str, int]) -> None:
    for seed in SEEDS:
        must_pass("ram", RAM, seed, planted=False, options=options)
