"""Launchers of the bench of what joins a core to a port."""

import pytest

from rtl.contract.link_config import LinkConfig
from rtl.port.packet_merge import PacketMerge
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

MERGE = "verif.benches.port.bench_packet_merge"


@pytest.mark.parametrize("seed", SEEDS)
def test_packet_merge(seed: int) -> None:
    must_pass("packet_merge", MERGE, seed, "x8")


def test_packet_merge_of_one_class() -> None:
    must_pass("packet_merge", MERGE, 1, LinkConfig(name="one", classes=1), planted=False)


@pytest.mark.parametrize("fault", faults_of(PacketMerge))
def test_packet_merge_fault_is_noticed(fault: int) -> None:
    must_notice("packet_merge", MERGE, fault, "x8")
