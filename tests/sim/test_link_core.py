"""Launchers of the benches of what joins a core to a port."""

import pytest

from rtl.contract.link_config import LinkConfig
from rtl.link.core_side.packet_merge import PacketMerge
from rtl.link.core_side.packet_pack import PacketPack
from rtl.link.core_side.packet_split import PacketSplit
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

MERGE = "verif.benches.link.bench_packet_merge"
PACK = "verif.benches.link.bench_packet_pack"
SPLIT = "verif.benches.link.bench_packet_split"


@pytest.mark.parametrize("seed", SEEDS)
def test_packet_merge(seed: int) -> None:
    must_pass("packet_merge", MERGE, seed, "x8")


def test_packet_merge_of_one_class() -> None:
    must_pass("packet_merge", MERGE, 1, LinkConfig(name="one", classes=1), planted=False)


@pytest.mark.parametrize("fault", faults_of(PacketMerge))
def test_packet_merge_fault_is_noticed(fault: int) -> None:
    must_notice("packet_merge", MERGE, fault, "x8")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("link", ["x8", "x16"])
def test_packet_pack(link: str, seed: int) -> None:
    must_pass("packet_pack", PACK, seed, link)


@pytest.mark.parametrize("link", ["x8", "x16"])
@pytest.mark.parametrize("fault", faults_of(PacketPack))
def test_packet_pack_fault_is_noticed(fault: int, link: str) -> None:
    must_notice("packet_pack", PACK, fault, link)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("link", ["x8", "x16"])
def test_packet_split(link: str, seed: int) -> None:
    must_pass("packet_split", SPLIT, seed, link)


@pytest.mark.parametrize("link", ["x8", "x16"])
@pytest.mark.parametrize("fault", faults_of(PacketSplit))
def test_packet_split_fault_is_noticed(fault: int, link: str) -> None:
    must_notice("packet_split", SPLIT, fault, link)
