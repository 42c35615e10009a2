"""Many small copies of one ring: what they leave, and what is refused."""

from typing import Any

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernels.dma_copy import dma_copy
from firmware.views import KernelError
from rtl.contract.config import named
from verif.golden.machine import GoldenMachine

TINY = named("tiny")


@pytest.mark.parametrize("direction", ["read", "write"])
@pytest.mark.parametrize("descriptors", [1, 8, 13, 80])
def test_each_row_is_moved(descriptors: int, direction: str) -> None:
    program = dma_copy(TINY, descriptors=descriptors, row_bytes=40, direction=direction)
    assert len(program.rings[0]) == descriptors and {d.bytes for d in program.rings[0]} == {40}
    machine = GoldenMachine(TINY, seed=descriptors)
    machine.load(build_image(program))
    result = machine.run()
    assert not result.faults
    given = descriptors if direction == "read" else min(8, descriptors)
    rows = np.random.default_rng(0).integers(0, 256, (given, 40), np.uint8)
    assert np.array_equal(result.outputs["moved"], rows[np.arange(descriptors) % given])


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"direction": "both"}, "descriptors go with direction=read or write, not both"),
        ({"rows": 8}, "descriptors are of a row each: they go with row_bytes and direction only"),
        ({"classes": "3:1"}, "descriptors are of a row each"),
        ({"row_bytes": 8000}, "descriptors must be at most 8 with row_bytes=8000, a row each in SBUF, not 9"),
    ],
)
def test_what_does_not_go_together_is_refused(params: dict[str, Any], says: str) -> None:
    with pytest.raises(KernelError, match=says):
        dma_copy(TINY, **{"descriptors": 9, **params})
