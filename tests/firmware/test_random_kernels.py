"""Random kernels leave the same bits in every legal order: the dependencies that were found suffice."""

import numpy as np
import pytest

from firmware.image import build_image
from rtl.contract.config import named
from verif.checks.random_kernel import random_kernel
from verif.golden.machine import GoldenMachine, RunResult


@pytest.mark.parametrize("of", ["plain", "elements", "indices"])
@pytest.mark.parametrize("number", range(12))
def test_any_legal_order_gives_the_same_bits(number: int, of: str):
    cfg = named("tiny")
    program = random_kernel(cfg, number, statements=30, elements=of == "elements", indices=of == "indices")
    image = build_image(program)

    def run(seed: int | None) -> RunResult:
        machine = GoldenMachine(cfg, seed)
        machine.load(image)
        return machine.run()

    reference = run(None)
    assert reference.faults == []
    for seed in range(4):
        again = run(seed)
        for name, bits in reference.outputs.items():
            assert np.array_equal(again.outputs[name], bits), f"{name} depends on the order (seed {seed})"
        assert np.array_equal(again.psum, reference.psum)


def test_the_same_seed_gives_the_same_program():
    cfg = named("tiny")
    one, two = (build_image(random_kernel(cfg, 5)).memory() for _ in range(2))
    assert np.array_equal(one, two)
