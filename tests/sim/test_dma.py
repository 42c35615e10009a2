"""Launchers of the DMA's benches. All of a unit run on its one build with planted faults."""

import pytest

from rtl.contract.config import named
from rtl.dma.axi_share import AxiShare
from rtl.dma.dma import Dma
from sim.runner import run_bench

TINY = named("tiny")
PORT = {"port_bytes": 32}

CASES = {
    **dict.fromkeys((1, 2, 4, 5, 32), ("bench_dma", "copies_every_alignment_and_length")),
    **dict.fromkeys((3, 11, 12), ("bench_dma", "copies_what_the_golden_model_copies")),
    **dict.fromkeys((21, 22, 31), ("bench_dma", "refuses_what_the_golden_model_refuses")),
    33: ("bench_hbm", None),
}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_dma(seed: int) -> None:
    run_bench("dma", "verif.benches.dma.bench_dma", TINY, seed=seed, planted=True).require()


@pytest.mark.parametrize("seed", [1])
def test_dma_with_hbm(seed: int) -> None:
    run_bench("dma", "verif.benches.dma.bench_hbm", TINY, seed=seed, planted=True).require()


@pytest.mark.parametrize("plant", Dma.FAULTS)
def test_dma_faults_are_seen(plant: int) -> None:
    bench, case = CASES[plant]
    verdict = run_bench("dma", f"verif.benches.dma.{bench}", TINY, plant=plant, testcase=case)
    assert verdict.failed, Dma.FAULTS[plant]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_axi_share(seed: int) -> None:
    bench = "verif.benches.dma.bench_axi_share"
    run_bench("axi_share", bench, TINY, seed=seed, planted=True, options=PORT).require()


@pytest.mark.parametrize("plant", AxiShare.FAULTS)
def test_axi_share_faults_are_seen(plant: int) -> None:
    verdict = run_bench("axi_share", "verif.benches.dma.bench_axi_share", TINY, plant=plant, options=PORT)
    assert verdict.failed, AxiShare.FAULTS[plant]
