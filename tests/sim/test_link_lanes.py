"""Launchers of the benches of the lanes of a link."""

import dataclasses

import pytest

from rtl.contract.link_config import LINKS, LinkConfig
from rtl.link.lanes.lane_receiver import LaneReceiver
from rtl.link.lanes.lane_sender import LaneSender
from verif.benches.link.lane_pair_top import LanePairTop
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

SENDER = "verif.benches.link.bench_lane_sender"
RECEIVER = "verif.benches.link.bench_lane_receiver"
PAIR = "verif.benches.link.bench_lane_pair"
ENDS = {"interval": 6}
BOTH = {"interval": 64, "delay": 100}
UNITS = [("x1", 0), ("x8", 2), ("x16", 0)]
PAIRS = [("x1", 1), ("x2", 2), ("x4", 0), ("x8", 2), ("x16", 1)]
"""At x16 the wires hold more flits than an end may refuse in a row."""


def link(name: str = "x8", spares: int = 2) -> LinkConfig:
    """A link whose lanes are called weak soon."""
    return dataclasses.replace(LINKS[name], spare_lanes=spares, weak_corrections=8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "spares"), UNITS)
def test_lane_sender(name: str, spares: int, seed: int) -> None:
    must_pass("lane_sender", SENDER, seed, link(name, spares), options=ENDS)


@pytest.mark.parametrize("fault", faults_of(LaneSender))
def test_lane_sender_fault_is_noticed(fault: int) -> None:
    must_notice("lane_sender", SENDER, fault, link(), options=ENDS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "spares"), UNITS)
def test_lane_receiver(name: str, spares: int, seed: int) -> None:
    must_pass("lane_receiver", RECEIVER, seed, link(name, spares), options=ENDS)


@pytest.mark.parametrize("fault", faults_of(LaneReceiver))
def test_lane_receiver_fault_is_noticed(fault: int) -> None:
    must_notice("lane_receiver", RECEIVER, fault, link(), options=ENDS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "spares"), PAIRS)
def test_lane_pair(name: str, spares: int, seed: int) -> None:
    must_pass("lane_pair", PAIR, seed, link(name, spares), options=BOTH)


@pytest.mark.parametrize("fault", faults_of(LanePairTop))
def test_lane_pair_fault_is_noticed(fault: int) -> None:
    must_notice("lane_pair", PAIR, fault, link(), options=BOTH)
