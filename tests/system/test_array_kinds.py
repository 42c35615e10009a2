"""Products in every format on the core, bit for bit, and what the report says of their rate.

NVFP4 needs another core: test_variants.py.
"""

from fractions import Fraction

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernels.gemm_formats import GEMM_FORMATS
from firmware.workloads import find_workload
from rtl.contract.config import named
from sim.bounding import bounds
from sim.verilated import VerilatedDevice, build_core
from verif.golden.machine import GoldenMachine

pytestmark = pytest.mark.sim
TINY = named("tiny")


@pytest.mark.parametrize("resident", [False, True], ids=["streamed", "resident"])
@pytest.mark.parametrize("dtype", [name for name in GEMM_FORMATS if name not in ("bf16", "fp16", "nvfp4")])
def test_products_of_every_format(dtype: str, resident: bool) -> None:
    params = {"m": 19, "k": 96, "n": 70, "dtype": dtype, "resident": resident, "out": "bf16" if resident else "fp32"}
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


@pytest.mark.parametrize(("dtype", "rate"), [("fp32", Fraction(1, 4)), ("fp8", 2), ("w4a8", 4), ("bf16", 1)])
def test_compute_bound_counts_the_products_of_a_cycle(dtype: str, rate: Fraction | int) -> None:
    program = find_workload("gemm").build(TINY, {"m": 16, "k": 64, "n": 64, "dtype": dtype}, seed=1)
    assert bounds(TINY, program, 0)["compute"] == Fraction(16 * 64 * 64, 8 * 8) / rate
