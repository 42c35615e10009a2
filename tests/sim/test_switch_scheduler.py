"""Launchers of the bench of the scheduler of a switch."""

import pytest

from rtl.contract.link_config import LINKS, LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.scheduling.scheduler import Scheduler
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

BENCH = "verif.benches.switch.bench_scheduler"
WEIGHTS = (3, 1, 2, 8, 1, 1, 5, 1)
STRICT = LinkConfig(weights=WEIGHTS, strict_class=2, strict_cap=16)
CONFIGS = {
    "merged": SwitchConfig(ports=4, link=STRICT, keep_slots=4),
    "wavefront": SwitchConfig(ports=5, matching="wavefront", link=LINKS["x16"]),
    "islip": SwitchConfig(ports=6, matching="islip", link=LinkConfig(weights=WEIGHTS, classes=4)),
    "sixteen": SwitchConfig(ports=16, link=LinkConfig(weights=WEIGHTS)),
}
ISLIP = {n for n, what in Scheduler.FAULTS.items() if "iSLIP" in what}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CONFIGS)
def test_scheduler(name: str, seed: int) -> None:
    must_pass("switch_scheduler", BENCH, seed, CONFIGS[name])


@pytest.mark.parametrize("fault", faults_of(Scheduler))
def test_scheduler_fault_is_noticed(fault: int) -> None:
    must_notice("switch_scheduler", BENCH, fault, CONFIGS["islip" if fault in ISLIP else "merged"])
