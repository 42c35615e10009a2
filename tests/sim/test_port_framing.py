"""Launchers of the benches of framing: packets to flits, flits to packets."""

import pytest

from rtl.port.scheduler import Scheduler
from rtl.port.send_path import SendPath
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

SCHEDULER = "verif.benches.port.bench_scheduler"
SEND = "verif.benches.port.bench_send_path"

PLAIN = {"changes": {"weights": [3, 1, 3, 1, 3, 1, 3, 1]}}
STRICT = {"changes": {"weights": [3, 1, 2, 8, 1, 1, 5, 1], "strict_class": 2, "strict_cap": 16}}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("options", [PLAIN, STRICT], ids=["weights", "strict"])
def test_scheduler(options: dict, seed: int) -> None:
    must_pass("scheduler", SCHEDULER, seed, options=options)


@pytest.mark.parametrize("fault", faults_of(Scheduler))
def test_scheduler_fault_is_noticed(fault: int) -> None:
    must_notice("scheduler", SCHEDULER, fault, options=STRICT)


SMALL = {"changes": {"classes": 2, "shared_flits": 8}}
WIDE = {"link": "x16", "changes": {"classes": 2, "shared_flits": 8, "send_beats": 24}}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("options", [SMALL, WIDE], ids=["x8", "x16"])
def test_send_path(options: dict, seed: int) -> None:
    must_pass("send_path", SEND, seed, options=options)


@pytest.mark.parametrize("fault", faults_of(SendPath))
def test_send_path_fault_is_noticed(fault: int) -> None:
    must_notice("send_path", SEND, fault, options=SMALL)
