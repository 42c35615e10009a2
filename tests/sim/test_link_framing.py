"""Launchers of the benches of framing: packets to flits, flits to packets."""

import pytest

from rtl.contract.link_config import LinkConfig
from rtl.link.framing.receive_path import ReceivePath
from rtl.link.framing.scheduler import Scheduler
from rtl.link.framing.send_path import SendPath
from verif.benches.link.framing_top import FramingTop
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

FRAMING = "verif.benches.link.bench_framing"
SCHEDULER = "verif.benches.link.bench_scheduler"
RECEIVE = "verif.benches.link.bench_receive_path"
SEND = "verif.benches.link.bench_send_path"

PLAIN = LinkConfig(weights=(3, 1, 3, 1, 3, 1, 3, 1))
STRICT = LinkConfig(weights=(3, 1, 2, 8, 1, 1, 5, 1), strict_class=2, strict_cap=16)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cfg", [PLAIN, STRICT], ids=["weights", "strict"])
def test_scheduler(cfg: LinkConfig, seed: int) -> None:
    must_pass("scheduler", SCHEDULER, seed, cfg)


@pytest.mark.parametrize("fault", faults_of(Scheduler))
def test_scheduler_fault_is_noticed(fault: int) -> None:
    must_notice("scheduler", SCHEDULER, fault, STRICT)


SMALL = LinkConfig(classes=2, shared_flits=8, weights=(3, 1, 1, 1, 1, 1, 1, 1))
EIGHT = LinkConfig(shared_flits=32)
WIDE = LinkConfig(lanes=16, classes=2, shared_flits=8, send_beats=48, weights=(3, 1, 1, 1, 1, 1, 1, 1))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cfg", [SMALL, WIDE], ids=["x8", "x16"])
def test_send_path(cfg: LinkConfig, seed: int) -> None:
    must_pass("send_path", SEND, seed, cfg)


@pytest.mark.parametrize("fault", faults_of(SendPath))
def test_send_path_fault_is_noticed(fault: int) -> None:
    must_notice("send_path", SEND, fault, SMALL)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cfg", [SMALL, WIDE], ids=["x8", "x16"])
def test_receive_path(cfg: LinkConfig, seed: int) -> None:
    must_pass("receive_path", RECEIVE, seed, cfg)


STUCK = (2, 5, 6)
"""Faults of RxPool that keep places of the pool: packets stay away, and nothing else shows it."""


@pytest.mark.parametrize("fault", faults_of(ReceivePath))
def test_receive_path_fault_is_noticed(fault: int) -> None:
    must_notice("receive_path", RECEIVE, fault, SMALL, hangs=fault in STUCK)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cfg", [SMALL, EIGHT, WIDE], ids=["two", "eight", "x16"])
def test_framing(cfg: LinkConfig, seed: int) -> None:
    """SMALL is what the planted faults run on: green there without one."""
    must_pass("framing", FRAMING, seed, cfg)


@pytest.mark.parametrize("fault", faults_of(FramingTop))
def test_framing_fault_is_noticed(fault: int) -> None:
    must_notice("framing", FRAMING, fault, SMALL)
