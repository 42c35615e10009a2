"""Launchers of the bench of a whole switch."""

import pytest

from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.device import SwitchDevice
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

SWITCH = "verif.benches.switch.bench_switch"
LOSSES = "verif.benches.switch.bench_switch_losses"
UNTOLD = {n for n, what in SwitchDevice.FAULTS.items() if what.endswith("not told")}
FOUR = SwitchConfig(name="four", ports=4, link=LinkConfig(classes=2, shared_flits=28))


@pytest.mark.parametrize("seed", SEEDS)
def test_switch(seed: int) -> None:
    must_pass("switch", SWITCH, seed, FOUR)


@pytest.mark.parametrize("seed", SEEDS)
def test_losses(seed: int) -> None:
    must_pass("switch", LOSSES, seed, FOUR)


@pytest.mark.parametrize("fault", faults_of(SwitchDevice))
def test_fault_is_noticed(fault: int) -> None:
    must_notice("switch", LOSSES if fault in UNTOLD else SWITCH, fault, FOUR)
