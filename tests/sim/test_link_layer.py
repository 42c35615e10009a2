"""Launchers of the benches of the link layer's own units."""

import pytest

from rtl.contract.link_config import LINKS, LinkConfig
from rtl.link.rules.begun_units import BegunUnits
from rtl.link.status import PortStatus
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

STATUS = "verif.benches.link.bench_status"
BEGUN = "verif.benches.link.bench_begun_units"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cfg", [LINKS["x8"], LinkConfig(name="narrow", window_flits=3, sequence_numbers=8)])
def test_begun_units(cfg: LinkConfig, seed: int) -> None:
    must_pass("begun_units", BEGUN, seed, cfg)


@pytest.mark.parametrize("fault", faults_of(BegunUnits))
def test_begun_units_fault_is_noticed(fault: int) -> None:
    must_notice("begun_units", BEGUN, fault, "x8")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("link", ["x8", "x16"])
def test_status(link: str, seed: int) -> None:
    must_pass("port_status", STATUS, seed, link)


@pytest.mark.parametrize("fault", faults_of(PortStatus))
def test_status_fault_is_noticed(fault: int) -> None:
    must_notice("port_status", STATUS, fault, "x8")
