"""Launchers of the benches of rtl/issue."""

import pytest

from rtl.contract.config import Config, load
from rtl.issue.check import Check
from rtl.issue.fetch import Fetch
from rtl.issue.issue import Issue
from rtl.issue.queue import IssueQueue
from rtl.issue.semaphores import Semaphores
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

CHECK = "verif.benches.issue.bench_check"
WEIGHTS = "verif.benches.issue.bench_weights"
FETCH = "verif.benches.issue.bench_fetch"
SEMAPHORES = "verif.benches.issue.bench_semaphores"
QUEUE = "verif.benches.issue.bench_queue"
ISSUE = "verif.benches.issue.bench_issue"

EVERY_KIND = load("tiny", ["tensor.nvfp4=true"])
TILED = load("small", ["tensor.cols=8", "tensor.nvfp4=true"])
TENSOR = {"queue": 0}
VECTOR = {"queue": 1}
SCALAR = {"queue": 2}
SYNC = {"queue": 4}
PORTS = {"readers": 3, "writers": 4}

CHECKED_BY = {4: VECTOR, 5: SCALAR, 6: VECTOR, 7: SCALAR, 14: VECTOR, 15: VECTOR, 25: VECTOR, 26: SCALAR}
CHECKED_BY |= dict.fromkeys((16, 17, 18, 19, 27), VECTOR)  # MX operands
"""Queues that have what a fault of the check is about, where the tensor queue has not."""

TILES = (23, 39, 40)
OF_WEIGHTS = (*range(31, 36), *range(37, 41))
"""Faults that only a configuration with row tiles shows; faults of what weights may be found by whom."""

NOTICED_BY = {
    41: "faults_of_rings_are_seen",
    42: "faults_of_rings_are_seen",
    51: "an_empty_program_is_done_at_once",
}
"""Faults that make every test of the bench time out: one test is enough to notice."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("options", [TENSOR, VECTOR, SCALAR], ids=["tensor", "vector", "scalar"])
def test_check(options: dict[str, int], seed: int) -> None:
    must_pass("check", CHECK, seed, EVERY_KIND, options=options)


def test_check_with_row_tiles() -> None:
    must_pass("check", CHECK, 1, TILED, options=TENSOR)


@pytest.mark.parametrize("cfg", [EVERY_KIND, TILED], ids=["one group", "row tiles"])
def test_weights(cfg: Config) -> None:
    must_pass("check", WEIGHTS, 1, cfg, options=TENSOR)


def test_check_without_sparsity() -> None:
    must_pass("check", CHECK, 1, load("tiny", ["tensor.sparsity=false"]), options=TENSOR)


@pytest.mark.parametrize("fault", faults_of(Check))
def test_check_fault_is_noticed(fault: int) -> None:
    cfg = TILED if fault in TILES else EVERY_KIND
    must_notice("check", WEIGHTS if fault in OF_WEIGHTS else CHECK, fault, cfg, options=CHECKED_BY.get(fault, TENSOR))


@pytest.mark.parametrize("seed", SEEDS)
def test_fetch(seed: int) -> None:
    must_pass("fetch", FETCH, seed)


def test_fetch_with_deep_queues_and_a_wide_port() -> None:
    must_pass("fetch", FETCH, 1, load("tiny", ["issue.queue_depth=16", "hbm.port_bytes=128"]))


@pytest.mark.parametrize("fault", faults_of(Fetch))
def test_fetch_fault_is_noticed(fault: int) -> None:
    must_notice("fetch", FETCH, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_semaphores(seed: int) -> None:
    must_pass("semaphores", SEMAPHORES, seed, options=PORTS)


@pytest.mark.parametrize("fault", faults_of(Semaphores))
def test_semaphores_fault_is_noticed(fault: int) -> None:
    must_notice("semaphores", SEMAPHORES, fault, options=PORTS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("options", [TENSOR, SYNC], ids=["tensor", "sync"])
def test_queue(options: dict[str, int], seed: int) -> None:
    must_pass("issue_queue", QUEUE, seed, options=options)


@pytest.mark.parametrize("fault", faults_of(IssueQueue))
def test_queue_fault_is_noticed(fault: int) -> None:
    must_notice("issue_queue", QUEUE, fault, options=TENSOR)


@pytest.mark.parametrize("seed", SEEDS)
def test_issue(seed: int) -> None:
    must_pass("issue", ISSUE, seed)


@pytest.mark.parametrize("fault", faults_of(Issue))
def test_issue_fault_is_noticed(fault: int) -> None:
    must_notice("issue", ISSUE, fault, testcase=NOTICED_BY.get(fault))
