"""Products in every format on the core, bit for bit, and what the report says of their rate.

NVFP4 needs another core: test_variants.py.
"""

from fractions import Fraction

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import Kernel
from firmware.kernels.gemm_formats import GEMM_FORMATS
from firmware.workloads import find_workload
from rtl.contract.config import named
from rtl.contract.isa import Cause
from rtl.contract.sparsity import PATTERNS
from sim.advice.bounding import bounds
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.golden.machine import GoldenMachine

pytestmark = pytest.mark.sim
TINY = named("tiny")


def _holds_on_the_core(dtype: str, resident: bool, sparsity: str | None = None) -> None:
    """A product on the core has the bits of the golden machine."""
    params = {"m": 19, "k": 96, "n": 70, "dtype": dtype, "resident": resident, "out": "bf16" if resident else "fp32"}
    params["sparsity"] = sparsity
    program = find_workload("gemm").build(TINY, params, seed=4)
    image = build_image(program)
    golden = GoldenMachine(TINY)
    golden.load(image)
    want = golden.run()
    assert want.faults == []
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        device.load(image)
        got = device.run()
    assert got.end == "done", f"{got.end}: {got.faults} {got.progress}"
    for name, bits in want.outputs.items():
        wrong = np.argwhere(got.outputs[name] != bits)
        assert not len(wrong), f"{name} differs in {len(wrong)} of {bits.size} elements, first at {wrong[0]}"


@pytest.mark.parametrize("resident", [False, True], ids=["streamed", "resident"])
@pytest.mark.parametrize("dtype", [name for name in GEMM_FORMATS if name not in ("bf16", "fp16", "nvfp4")])
def test_products_of_every_format(dtype: str, resident: bool) -> None:
    _holds_on_the_core(dtype, resident)


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("pattern", list(PATTERNS))
def test_sparse_products(pattern: str, dtype: str) -> None:
    _holds_on_the_core(dtype, dtype == "fp16", pattern)


def test_compute_bound_counts_products_of_kept_numbers() -> None:
    program = find_workload("gemm").build(TINY, {"m": 16, "k": 64, "n": 64, "sparsity": "4:16"}, seed=1)
    assert bounds(TINY, program, 0)["compute"] == 16 * 16 * 64 // (8 * 8)


def test_wrong_tags_halt_the_core_as_they_halt_the_golden_machine() -> None:
    k = Kernel(TINY, "wrong")
    numbers = k.sbuf("numbers", partitions=8, columns=8, dtype="bf16")
    tags = k.sbuf("tags", partitions=8, columns=2, dtype="uint16")
    k.vector.memset(numbers[:, :], 1.0)
    right = np.tile(np.array([[0x2020], [0x3131]], np.uint16), (4, 2))
    wrong = right.copy()
    wrong[7, 1] = 0x3121  # tag 2 twice in column 5
    for name, bits in (("right", right), ("wrong", wrong)):
        k.dma(tags[:, :], k.hbm(name, (8, 2), "uint16", bits)[:, :])
        k.tensor.load(numbers[:, :], tags=tags[:, :], sparsity="2:4")
    image = build_image(k.program())
    golden = GoldenMachine(TINY)
    golden.load(image)
    with VerilatedDevice(TINY, build_core(TINY).binary) as device:
        device.load(image)
        found = device.run().faults
    want = golden.run().faults
    assert [(f.queue, f.sequence, f.cause, f.address) for f in found] == [
        (f.queue, f.sequence, f.cause, f.address) for f in want
    ]
    assert [f.cause for f in want] == [Cause.TAGS]


@pytest.mark.parametrize(("dtype", "rate"), [("fp32", Fraction(1, 4)), ("fp8", 2), ("w4a8", 4), ("bf16", 1)])
def test_compute_bound_counts_the_products_of_a_cycle(dtype: str, rate: Fraction | int) -> None:
    program = find_workload("gemm").build(TINY, {"m": 16, "k": 64, "n": 64, "dtype": dtype}, seed=1)
    assert bounds(TINY, program, 0)["compute"] == Fraction(16 * 64 * 64, 8 * 8) / rate
