"""Copies, affine instructions and functions of the scalar engine in a core: the golden machine's bits, two a cycle."""

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import Kernel
from firmware.program import Program
from rtl.contract.config import named
from rtl.contract.roles import needed
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.golden.machine import GoldenMachine

pytestmark = pytest.mark.sim
TINY = named("tiny")
COLUMNS = 256


def kernel(step: int) -> Program:
    """Each of the three on BF16 of any bits; elements `step` apart, of which only neighbours go two at a time."""
    lanes = TINY.partitions
    bits = np.random.default_rng(step).integers(0, 1 << 16, (lanes, COLUMNS * step), dtype=np.uint16)
    k = Kernel(TINY, "pairs")
    x = k.sbuf("x", partitions=lanes, columns=COLUMNS * step, dtype="bf16")
    k.dma(x[:, :], k.hbm("in", bits.shape, "bf16", bits)[:, :])
    source = x[:, ::step]
    made = {name: k.sbuf(name, partitions=lanes, columns=COLUMNS, dtype="bf16") for name in ("copy", "affine", "relu")}
    k.scalar.tensor_copy(made["copy"][:, :], source)
    k.scalar.tensor_scalar(made["affine"][:, :], source, "subtract", 1.5, "add", 0.25)
    k.scalar.activation(made["relu"][:, :], source, "relu", scale=2.0)
    for name, tile in made.items():
        k.dma(k.hbm(f"out {name}", (lanes, COLUMNS), "bf16")[:, :], tile[:, :])
    return k.program()


@pytest.mark.parametrize(("step", "width"), [(1, 2), (2, 1)])
def test_the_core_does_what_the_golden_machine_does_at_its_rate(step: int, width: int) -> None:
    program = kernel(step)
    image = build_image(program)
    golden = GoldenMachine(TINY)
    golden.load(image)
    want = golden.run()
    with VerilatedDevice(TINY, build_core(needed(TINY)).binary) as device:
        device.load(image)
        got = device.run()
    assert got.end == "done" and not want.faults
    assert all(np.array_equal(got.outputs[name], bits) for name, bits in want.outputs.items())
    assert program.scalar_cycles == 3 * COLUMNS // width
    busy = got.engines["scalar"].parts["busy"]
    ratio = TINY.tensor.clock_mhz // TINY.scalar.clock_mhz
    assert busy == dict.fromkeys(("scalar_copy", "scalar_affine", "activation"), ratio * COLUMNS // width)


def test_a_copy_keeps_the_bits_of_a_nan() -> None:
    golden = GoldenMachine(TINY)
    golden.load(build_image(kernel(1)))
    bits = np.random.default_rng(1).integers(0, 1 << 16, (TINY.partitions, COLUMNS), dtype=np.uint16)
    found = golden.run().outputs["out copy"]
    nans = bits[np.isnan((bits.astype(np.uint32) << 16).view(np.float32))]
    assert np.array_equal(found, bits) and len(np.unique(nans)) > 1
