"""Launchers of the tensor engine's bench. The array's own benches are in test_tensor.py."""

import pytest

from rtl.contract.config import load
from rtl.tensor.engine import TensorEngine
from rtl.tensor.feed import Feed
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

BENCH = "verif.benches.tensor.bench_engine"
NATIVE = {"form": "native"}
FEED = "verif.benches.tensor.bench_feed"
EVERY_KIND = load("tiny", ["tensor.nvfp4=true"])
WIDE = load("tiny", ["partitions=32", "tensor.rows=32", "tensor.nvfp4=true"])
"""Blocks of 32 partitions, as in the larger configurations, and scales of both kinds."""


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize("reverse", [False, True], ids=["moving", "stationary"])
def test_feed(reverse: bool, seed: int) -> None:
    must_pass("feed", FEED, seed, WIDE, options={"reverse": reverse})


@pytest.mark.parametrize("fault", faults_of(Feed))
def test_feed_fault_is_noticed(fault: int) -> None:
    must_notice("feed", FEED, fault, WIDE, options={"reverse": False})


@pytest.mark.parametrize("seed", SEEDS)
def test_tensor_engine(seed: int) -> None:
    must_pass("tensor_engine", BENCH, seed, EVERY_KIND, options=NATIVE)


@pytest.mark.parametrize("fault", faults_of(TensorEngine))
def test_tensor_engine_fault_is_noticed(fault: int) -> None:
    must_notice("tensor_engine", BENCH, fault, EVERY_KIND, options=NATIVE)
