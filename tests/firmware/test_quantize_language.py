"""k.vector.quantize_mx on the golden machine against the casts of ml_dtypes; hazards; what the language refuses."""

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import Kernel, KernelError
from rtl.contract.config import named
from rtl.contract.isa import Opcode, Queue, mx_scale_partition
from verif.checks.lab import TINY, Lab, P
from verif.checks.random_quantize import random_quantize
from verif.golden.machine import GoldenMachine

EMAX = {"e4m3fn": 8, "e5m2": 15, "e2m1": 2}
KINDS: dict[str, Any] = {
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
LARGEST = {"e4m3fn": 448.0, "e5m2": 57344.0, "e2m1": 6.0}


@pytest.mark.parametrize("slot", range(4))
@pytest.mark.parametrize("fmt", EMAX)
def test_elements_and_scales_lie_where_the_tensor_engine_wants_them(fmt: str, slot: int):
    """Element by element: 8 partitions x 4 neighbours share a scale; tiny has 8 partitions, Q = 8."""
    rng = np.random.default_rng(slot)
    columns = 12
    values = (rng.standard_normal((P, 4 * columns)) * 2.0 ** rng.integers(-9, 9, (1, 4 * columns))).astype(np.float16)
    lab = Lab()
    x = lab.put("x", "fp16", values.view(np.uint16))
    kind, count = ("uint8", 2 * columns) if fmt == "e2m1" else (fmt, 4 * columns)
    y = lab.out("y", kind, count)
    scales = lab.out("scales", "uint8", columns)
    lab.k.vector.memset(scales[:, :], 0.0)
    lab.k.vector.quantize_mx(y[:, :], x[:, :], scales[:, :], fmt=fmt, slot=slot)
    found = lab.run()
    blocks = values.astype(np.float64).reshape(P, columns, 4)
    exponent = np.floor(np.log2(np.abs(blocks).max(axis=(0, 2)))) - EMAX[fmt]
    want = np.zeros((P, columns), np.uint8)
    want[slot] = exponent + 127  # one block, on partition o = slot
    assert np.array_equal(found["scales"], want)
    quotient = np.clip(blocks / 2.0 ** exponent[:, None], -LARGEST[fmt], LARGEST[fmt])
    codes = quotient.astype(KINDS[fmt]).view(np.uint8).reshape(P, -1)
    if fmt == "e2m1":
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    assert np.array_equal(found["y"].view(np.uint8), codes)


def test_scale_partitions_of_every_size():
    assert [mx_scale_partition(r, 0, 8) for r in (0, 7)] == [0, 0]
    assert [mx_scale_partition(0, slot, 8) for slot in range(4)] == [0, 1, 2, 3]
    assert [mx_scale_partition(r, 1, 32) for r in (0, 8, 16, 31)] == [4, 5, 6, 7]
    assert [mx_scale_partition(r, 3, 128) for r in (0, 31, 32, 127)] == [12, 15, 44, 111]


@pytest.mark.parametrize("config", ["tiny", "small"])
@pytest.mark.parametrize("seed", range(4))
def test_any_legal_order_gives_the_same_bits(config: str, seed: int):
    cfg = named(config)
    image = build_image(random_quantize(cfg, seed))
    outputs = []
    for order in (None, 1, 2):
        machine = GoldenMachine(cfg, order)
        machine.load(image)
        result = machine.run()
        assert not result.faults
        outputs.append(result.outputs)
    for name, bits in outputs[0].items():
        assert all(np.array_equal(bits, other[name]) for other in outputs[1:]), name


def test_both_destinations_are_known_to_hazards():
    """Copies of elements and of scales wait for the instruction; the scales of another slot do not."""
    k = Kernel(TINY, "hazards")
    x = k.sbuf("x", partitions=P, columns=16, dtype="bf16")
    y = k.sbuf("y", partitions=P, columns=16, dtype="e4m3fn")
    scales = k.sbuf("scales", partitions=P, columns=4, dtype="uint8")
    k.vector.quantize_mx(y[:, :], x[:, :], scales[:, :], slot=1)
    k.dma(k.hbm("scale", (1, 4), "uint8"), scales[1:2, :])
    k.dma(k.hbm("other", (1, 4), "uint8"), scales[2:3, :])
    k.dma(k.hbm("elements", (P, 16), "e4m3fn"), y[:, :])
    program = k.program()
    (quantize,) = [i for i in program.queues[Queue.VECTOR] if i.opcode == Opcode.QUANTIZE_MX]
    triggers = [i for q in program.queues.values() for i in q if i.opcode == Opcode.DMA_TRIGGER]
    waits = [any(w.semaphore == quantize.update for w in i.waits) for i in triggers]
    assert waits[0], "the copy of the scales has to wait"


def _views(k: Kernel) -> dict[str, Any]:
    def tile(name: str, columns: int, dtype: str, partitions: int = P) -> Any:
        return k.sbuf(name, partitions=partitions, columns=columns, dtype=dtype)[:, :]

    return {
        "x": tile("x", 32, "bf16"),
        "y": tile("y", 32, "e4m3fn"),
        "n": tile("n", 16, "uint8"),
        "s": tile("s", 8, "uint8"),
        "f": tile("f", 32, "fp32"),
        "p": k.psum("p", partitions=P, columns=32)[:, :],
    }


REFUSED: list[tuple[str, Callable[[Any, dict[str, Any]], object]]] = [
    ("not fp32", lambda v, t: v.quantize_mx(t["f"], t["x"], t["s"])),
    ("to e2m1 needs a tile of uint8; y is e4m3fn", lambda v, t: v.quantize_mx(t["y"], t["x"], t["s"], fmt="e2m1")),
    ("reads bf16 or fp16, not fp32, the format of f", lambda v, t: v.quantize_mx(t["y"], t["f"], t["s"])),
    ("rule of quantize_mx is ocp or emax-1, not 'max'", lambda v, t: v.quantize_mx(t["y"], t["x"], t["s"], rule="max")),
    ("slot of quantize_mx is 0 to 3, not 4", lambda v, t: v.quantize_mx(t["y"], t["x"], t["s"], slot=4)),
    ("a multiple of 16 elements", lambda v, t: v.quantize_mx(t["y"][:, :8], t["x"][:, :8], t["s"][:, :2])),
    ("gives 8 x 32; y is (8, 16)", lambda v, t: v.quantize_mx(t["y"][:, :16], t["x"], t["s"])),
    ("gives 8 x 16; n is (8, 8)", lambda v, t: v.quantize_mx(t["n"][:, :8], t["x"], t["s"], fmt="e2m1")),
    ("8 columns of uint8 scales; s has 4 of uint8", lambda v, t: v.quantize_mx(t["y"], t["x"], t["s"][:, :4])),
    ("from a multiple of 8 bytes", lambda v, t: v.quantize_mx(t["y"][:, :16], t["x"][:, 2:18], t["s"][:, :4])),
    ("from a multiple of 8 bytes", lambda v, t: v.quantize_mx(t["y"][:, 4:20], t["x"][:, :16], t["s"][:, :4])),
    ("from a multiple of 4 bytes", lambda v, t: v.quantize_mx(t["y"][:, :16], t["x"][:, :16], t["s"][:, 2:6])),
    ("neighbours in one row", lambda v, t: v.quantize_mx(t["y"][:, :16], t["x"][:, ::2], t["s"][:, :4])),
    ("blocks of 8 partitions; x is on 4 from 0", lambda v, t: v.quantize_mx(t["y"][:4], t["x"][:4], t["s"])),
    ("scales on partitions 0 to 7; s is on 4 from 0", lambda v, t: v.quantize_mx(t["y"], t["x"], t["s"][:4])),
    (
        "needs n and n apart",
        lambda v, t: v.quantize_mx(t["n"][:, :8], t["x"][:, :16], t["n"][:, 4:8], fmt="e2m1"),
    ),
]


@pytest.mark.parametrize(("sentence", "action"), REFUSED)
def test_refused(sentence: str, action: Callable[[Any, dict[str, Any]], object]):
    k = Kernel(TINY, "refused")
    with pytest.raises(KernelError, match=re.escape(sentence)) as error:
        action(k.vector, _views(k))
    assert "\n" not in str(error.value)
