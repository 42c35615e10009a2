"""The workload `moe` on a core with two row groups: bit for bit in every mode."""

from typing import Any

import numpy as np
import pytest

from firmware.image import build_image
from firmware.workloads import find_workload
from rtl.contract.config import load
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.golden.machine import GoldenMachine

pytestmark = pytest.mark.sim
TWO = load("tiny", ["partitions=16", "tensor.rows=16", "tensor.cols=16", "sbuf.partition_bytes=16384"])


def _run(mode: str, dtype: str, **more: Any) -> None:
    settings = {"tokens": 48, "d": 64, "f": 16, "mode": mode, "dtype": dtype, "scored": True} | more
    image = build_image(find_workload("moe").build(TWO, settings, seed=2))
    golden = GoldenMachine(TWO)
    golden.load(image)
    want = golden.run()
    assert want.faults == []
    with VerilatedDevice(TWO, build_core(TWO).binary) as device:
        device.load(image)
        got = device.run()
    assert got.end == "done", f"{got.end}: {got.faults} {got.progress}"
    for name, bits in want.outputs.items():
        wrong = np.argwhere(got.outputs[name] != bits)
        assert not len(wrong), f"{name} differs in {len(wrong)} of {bits.size} elements, first at {wrong[0]}"


@pytest.mark.parametrize("mode", ["tiles", "one", "whole"])
@pytest.mark.parametrize("dtype", ["bf16", "mxfp8"])
def test_moe(mode: str, dtype: str) -> None:
    _run(mode, dtype)


@pytest.mark.parametrize("top_k", [1, 3])
def test_moe_routed_by_gpsimd_cores(top_k: int) -> None:
    _run("whole", "bf16", router="gpsimd", top_k=top_k)
