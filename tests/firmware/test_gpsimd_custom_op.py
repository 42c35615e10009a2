"""The example of an operator of one's own: compiled, in a kernel between other work, compared with NumPy."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from firmware.gpsimd.apps.custom_op.clip import clip
from firmware.gpsimd.build import build
from firmware.gpsimd.options import Options
from firmware.image import build_image
from firmware.kernel import Kernel
from rtl.contract.config import named
from rtl.contract.isa import Cause
from sim.toolchain import ROOT
from verif.golden.machine import GoldenMachine, RunResult

SOURCE = ROOT / "firmware" / "gpsimd" / "apps" / "custom_op" / "clip.cpp"
SMALL = named("small")
pytestmark = [
    pytest.mark.firmware,
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no ziglang: make firmware-tools"),
]


@pytest.fixture(scope="module")
def image() -> Path:
    return build([SOURCE], options=Options(vector=False)).path


def ran(image: Path, x: np.ndarray, low: int, high: int) -> RunResult:
    k = Kernel(SMALL, "clip")
    given, result = k.hbm("x", x.shape, "int32", x.view(np.uint32)), k.hbm("y", x.shape, "int32")
    tile = k.sbuf("tile", partitions=len(x), columns=x.shape[1], dtype="int32", start=5)[:, :]
    k.dma(tile, given[:, :])
    clip(k, image, tile, tile, low, high)  # in place
    k.gpsimd.integer(tile, tile, "add", 1)  # the library beside it
    k.dma(result[:, :], tile)
    machine = GoldenMachine(SMALL)
    machine.load(build_image(k.program()))
    return machine.run()


def test_clip_is_that_of_numpy(image: Path) -> None:
    x = np.random.default_rng(1).integers(-99, 99, (20, 7)).astype(np.int32)
    found = ran(image, x, -50, 20)
    assert not found.faults
    assert np.array_equal(found.outputs["y"].view(np.int32), np.clip(x, -50, 20) + 1)


def test_bounds_in_the_wrong_order_fail_the_run(image: Path) -> None:
    found = ran(image, np.zeros((8, 2), np.int32), 3, 2)
    assert [fault.cause for fault in found.faults] == [Cause.GP_EXIT]
