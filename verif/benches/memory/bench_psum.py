"""PSUM against a model that commits each row at its cycle, cycle by cycle.

Sums are checked against NumPy's FP32 addition, which rounds once, to nearest even.
"""

import cocotb

from rtl.contract.config import load
from rtl.contract.timing import PSUM_ADD_CYCLES
from verif.bench import Run
from verif.benches.memory.psum_coverage import COVERAGE, OF_GROUPS
from verif.benches.memory.psum_driver import started
from verif.benches.memory.psum_writes import Row, random_data

_SETTINGS = ["tensor.cols=8", "tensor.moving_max=64", "psum.banks=4", "psum.bank_bytes=256"]
_GROUPS = load("small", _SETTINGS)
"""Four row groups in a small PSUM."""

_PLANTED = (
    "an add overwrites its sum",
    "partitions outside the mask of a sum are written",
    "a reader takes the bank that an add reads",
    "the read data come from the bank of the cycle before",
    "a refused read of PSUM is not reported",
    "an engine's write does not wait for the sum that commits in its bank",
    "an engine writes both elements of a word of PSUM",
    "an engine writes all partitions of PSUM",
    "a refused write of PSUM is not reported",
    "a lost row of PSUM is not reported",
    "of two rows in one bank both are taken",
    "the adders' clock stops before a sum has left them",
    "an engine's write does not wait for a transpose",
    "a transpose is written to all partitions",
    "a NaN of a transpose loses its payload",
    "sums are not rounded to BF16",
    "every group adds to the row that group 0 has read",
    "an engine's write does not wait for the sum of the last group",
)

RUNS = (
    Run("psum", config=_GROUPS, options={"form": "native"}, faults=_PLANTED),
    Run("psum", options={"form": "structural"}, seeds=(1,), mutated=True),
)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def overwrites_and_reads_back_every_element(dut) -> None:
    bench = await started(dut)
    every = (1 << bench.lanes) - 1
    for element in bench.rng.permutation(bench.elements):
        await bench.step([Row(int(element), False, every, random_data(bench.rng, bench.lanes))], lambda n: None)
    for _ in range(PSUM_ADD_CYCLES + 1):
        await bench.step([], lambda n: None)
    order = iter(bench.rng.permutation(bench.elements // 2).tolist())
    for _ in range(bench.elements // 2 + 4):
        await bench.step([], lambda n: next(order, None) if n == 0 else None)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def adds_and_serves_readers_under_random_traffic(dut) -> None:
    bench = await started(dut)
    for write, read, accumulate in ((0.3, 0.3, 0.7), (1.0, 0.2, 0.5), (0.5, 1.0, 0.8), (1.0, 1.0, 0.9)):
        for count, store in ((6, 0.3), (16, 1.0)):
            await bench.run(200, write, read, accumulate, bench.few(count), store)
    assert all(bench.counts), "no reader was ever refused"
    assert all(bench.refused_writes), "no write was ever refused"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def sums_a_row_again_and_again(dut) -> None:
    bench = await started(dut)
    elements = bench.few(PSUM_ADD_CYCLES + 1)
    every = (1 << bench.lanes) - 1
    for i in range(400):
        element = int(elements[i % len(elements)])
        await bench.step([Row(element, i >= len(elements), every, random_data(bench.rng, bench.lanes))], lambda n: None)
    await bench.run(10, 0.0, 1.0, 0.0, elements)
    COVERAGE.require_all()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def row_groups_add_side_by_side(dut) -> None:
    bench = await started(dut)
    for write, read, accumulate in ((0.1, 0.2, 0.6), (0.6, 0.3, 0.5), (1.0, 0.5, 0.9)):
        await bench.run(150, write, read, accumulate, bench.apart(8), 0.4)
        await bench.run(100, write, read, accumulate, bench.few(12), 0.4)
    if bench.groups > 1:
        OF_GROUPS.require_all()
