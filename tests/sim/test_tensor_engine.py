"""Launchers of the tensor engine's bench. The array's own benches are in test_tensor.py."""

import pytest

from rtl.contract.config import load
from rtl.tensor.engine import TensorEngine
from rtl.tensor.feed import Feed
from rtl.tensor.tag_feed import TagFeed
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

BENCH = "verif.benches.tensor.bench_engine"
TILES = "verif.benches.tensor.bench_gang"
NATIVE = {"form": "native"}
SMALL = ["tensor.cols=8", "tensor.moving_max=64", "psum.bank_bytes=256", "sbuf.partition_bytes=8192"]
GROUPS = load("small", SMALL)
"""Four row groups in the smallest array that has them."""
OF_TILES = (44, *range(53, 64), 76)
"""Faults that only row tiles show."""
FEED = "verif.benches.tensor.bench_feed"
EVERY_KIND = load("tiny", ["tensor.nvfp4=true"])
WIDE = load("tiny", ["partitions=32", "tensor.rows=32", "tensor.nvfp4=true", "tensor.row_groups=1"])
"""Blocks of 32 partitions, as in the larger configurations, and scales of both kinds; a feed of all rows."""


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize("reverse", [False, True], ids=["moving", "stationary"])
def test_feed(reverse: bool, seed: int) -> None:
    must_pass("feed", FEED, seed, WIDE, options={"reverse": reverse})


@pytest.mark.parametrize("reverse", [False, True], ids=["moving", "stationary"])
@pytest.mark.parametrize("setting", ["tensor.mx", "tensor.sparsity"])
def test_feed_of_less(setting: str, reverse: bool) -> None:
    must_pass("feed", FEED, 1, load("tiny", [f"{setting}=false"]), options={"reverse": reverse})


@pytest.mark.parametrize("fault", faults_of(Feed))
def test_feed_fault_is_noticed(fault: int) -> None:
    must_notice("feed", FEED, fault, WIDE, options={"reverse": fault in TagFeed.FAULTS})


@pytest.mark.parametrize("seed", SEEDS)
def test_tensor_engine(seed: int) -> None:
    must_pass("tensor_engine", BENCH, seed, EVERY_KIND, options=NATIVE)


@pytest.mark.parametrize("seed", SEEDS)
def test_row_tiles(seed: int) -> None:
    must_pass("tensor_engine", TILES, seed, GROUPS, options=NATIVE)


def test_whole_array_of_row_groups() -> None:
    must_pass("tensor_engine", BENCH, 1, GROUPS, options=NATIVE)


@pytest.mark.parametrize("fault", faults_of(TensorEngine))
def test_tensor_engine_fault_is_noticed(fault: int) -> None:
    if fault in OF_TILES:
        must_notice("tensor_engine", TILES, fault, GROUPS, options=NATIVE)
    else:
        must_notice("tensor_engine", BENCH, fault, EVERY_KIND, options=NATIVE)
