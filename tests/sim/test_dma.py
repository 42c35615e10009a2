"""Launchers of the DMA's benches. All of a unit run on its one build with planted faults."""

import pytest

from rtl.dma.axi_share import AxiShare
from rtl.dma.dma import Dma
from verif.launch import SEEDS, must_notice, must_pass

pytestmark = pytest.mark.sim

AXI_SHARE = "verif.benches.dma.bench_axi_share"
PORT = {"port_bytes": 32}

ENDPOINT = "bench_endpoint"
LINK = {"link": True}

CASES = {
    **dict.fromkeys((1, 2, 4, 5, 32), ("bench_dma", "copies_every_alignment_and_length")),
    **dict.fromkeys((3, 11, 12), ("bench_dma", "copies_what_the_golden_model_copies")),
    **dict.fromkeys((21, 22, 31), ("bench_dma", "refuses_what_the_golden_model_refuses")),
    33: ("bench_hbm", None),
    **dict.fromkeys((41, 42, 43, 44, 45, 49, 50), (ENDPOINT, "executes_requests_in_order")),
    **dict.fromkeys((46, 47, 48), (ENDPOINT, "transfers_to_and_from_another_core")),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_dma(seed: int) -> None:
    must_pass("dma", "verif.benches.dma.bench_dma", seed)


def test_dma_with_a_link_does_the_same_inside() -> None:
    must_pass("dma", "verif.benches.dma.bench_dma", 1, options=LINK)


@pytest.mark.parametrize("seed", SEEDS)
def test_dma_with_hbm(seed: int) -> None:
    must_pass("dma", "verif.benches.dma.bench_hbm", seed)


@pytest.mark.parametrize("plant", Dma.FAULTS)
def test_dma_faults_are_seen(plant: int) -> None:
    bench, case = CASES[plant]
    options = LINK if bench == ENDPOINT else None
    must_notice("dma", f"verif.benches.dma.{bench}", plant, testcase=case, options=options)


@pytest.mark.parametrize("seed", SEEDS)
def test_endpoint(seed: int) -> None:
    must_pass("dma", "verif.benches.dma.bench_endpoint", seed, options=LINK)


@pytest.mark.parametrize("seed", SEEDS)
def test_axi_share(seed: int) -> None:
    must_pass("axi_share", AXI_SHARE, seed, options=PORT)


@pytest.mark.parametrize("plant", AxiShare.FAULTS)
def test_axi_share_faults_are_seen(plant: int) -> None:
    must_notice("axi_share", AXI_SHARE, plant, options=PORT)
