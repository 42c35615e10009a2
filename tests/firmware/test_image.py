"""The layout of HBM: nothing overlaps, all is aligned, contents are what the program says."""

import numpy as np
import pytest

from firmware.image import ImageError, build_image
from firmware.kernel import Kernel
from firmware.kernels.gemm import gemm
from firmware.views import MemoryFullError
from rtl.contract.config import load, named
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import INSTRUCTION, Opcode, Queue


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (13, 9, 77), (40, 70, 3)])
def test_layout(m: int, k: int, n: int):
    rng = np.random.default_rng(0)
    program = gemm(named("tiny"), rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32))
    image = build_image(program)
    places = [(base, count * 128) for base, count in (*image.queues.values(), *image.rings) if count]
    places += [(r.offset, r.bytes) for r in image.tensors.values()]
    assert all(base % 128 == 0 for base, _ in places)
    places.sort()
    for (base, size), (following, _) in zip(places, [*places[1:], (image.hbm_bytes, 0)], strict=True):
        assert base + size <= following
    memory = image.memory()
    assert len(memory) == image.hbm_bytes
    for tensor in program.tensors.values():
        region = image.tensors[tensor.name]
        held = memory[region.offset : region.offset + region.bytes]
        expected = np.full(region.bytes, 0xFF, np.uint8) if tensor.data is None else tensor.data.view(np.uint8)
        assert np.array_equal(held, expected.reshape(-1))
    assert list(image.outputs) == [t.name for t in program.tensors.values() if t.output]


def test_words_of_the_queues():
    program = gemm(named("tiny"), np.ones((8, 8), np.float32), np.ones((8, 8), np.float32))
    image = build_image(program)
    memory = image.memory().tobytes()
    base, count = image.queues[Queue.TENSOR]
    found = [INSTRUCTION.unpack(int.from_bytes(memory[base + 128 * i :][:128], "little")) for i in range(count)]
    assert [f["opcode"] for f in found] == [Opcode.LOAD_STATIONARY, Opcode.MULTIPLY_MOVING]
    base, count = image.rings[1]
    assert count == 1
    store = DESCRIPTOR.unpack(int.from_bytes(memory[base : base + 128], "little"))
    assert store["destination"] == image.outputs["c"].offset
    assert store["row_bytes"] == 32 and (store["count0"], store["count1"]) == (4, 2)


def test_too_large_for_hbm():
    cfg = load("tiny", ["hbm.capacity_mib=1"])
    k = Kernel(cfg, "large")
    k.hbm("y", ((1 << 20) - 127,), "uint8")
    with pytest.raises(MemoryFullError, match="large needs 1048705 bytes of HBM with tensor w, more than hbm.capacity"):
        k.hbm("w", (256,), "uint8")
    small = Kernel(cfg, "large")
    small.hbm("y", ((1 << 20) - 127,), "uint8")
    small.hbm("z", (100,), "uint8")  # begins at a multiple of 128 bytes
    with pytest.raises(
        ImageError, match="program large needs 1048704 bytes of HBM, more than hbm.capacity_mib = 1 MiB"
    ):
        build_image(small.program())
