"""Launchers of the benches of a switch's output side, crossbar, bypass and registers."""

import pytest

from rtl.contract.link_config import LinkConfig
from rtl.switch.egress import Egress
from rtl.switch.output_buffer import OutputBuffer
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

EGRESS = "verif.benches.switch.bench_egress"
BUFFER = "verif.benches.switch.bench_output_buffer"

SMALL = LinkConfig(classes=2, shared_flits=12, window_flits=20)
SLOW = LinkConfig(classes=2, shared_flits=12, window_flits=20, lanes=4)
WIDE = LinkConfig(classes=2, shared_flits=12, window_flits=20, lanes=16)
LINKS = pytest.mark.parametrize("cfg", [SMALL, SLOW, WIDE], ids=["x8", "x4", "x16"])


@pytest.mark.parametrize("seed", SEEDS)
@LINKS
def test_egress(cfg: LinkConfig, seed: int) -> None:
    must_pass("switch_egress", EGRESS, seed, cfg)


def test_egress_of_a_whole_link() -> None:
    must_pass("switch_egress", EGRESS, 1, "x8")


@pytest.mark.parametrize("fault", faults_of(Egress))
def test_egress_fault_is_noticed(fault: int) -> None:
    must_notice("switch_egress", EGRESS, fault, SMALL)


@pytest.mark.parametrize("seed", SEEDS)
@LINKS
def test_output_buffer(cfg: LinkConfig, seed: int) -> None:
    must_pass("switch_output_buffer", BUFFER, seed, cfg)


@pytest.mark.parametrize("fault", faults_of(OutputBuffer))
def test_output_buffer_fault_is_noticed(fault: int) -> None:
    must_notice("switch_output_buffer", BUFFER, fault, SMALL)
