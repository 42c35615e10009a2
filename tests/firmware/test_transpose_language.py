"""k.tensor.transpose: what it leaves, in every format and view, what it waits for, and what it refuses."""

from collections.abc import Callable

import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import Kernel, KernelError
from firmware.numbers import bits_dtype
from firmware.views import TileView
from rtl.contract.config import load, named
from rtl.contract.isa import Opcode, Queue
from verif.golden.machine import GoldenMachine

TINY = named("tiny")
TILED = load("small", ["tensor.cols=8", "tensor.moving_max=64"])
SEEDS = (None, 1, 2, 3)


def run(k: Kernel, name: str, seed: int | None = None) -> np.ndarray:
    machine = GoldenMachine(k.cfg, seed=seed)
    machine.load(build_image(k.program()))
    result = machine.run()
    assert result.faults == []
    return result.outputs[name]


def given(k: Kernel, name: str, dtype: str, rows: int, columns: int, start: int = 0) -> tuple[TileView, np.ndarray]:
    """A tile of random bits, and the bits."""
    width = bits_dtype(dtype)
    bits = np.random.default_rng(rows).integers(0, 1 << 8 * width.itemsize, (rows, columns), width)
    tile = k.sbuf(name, partitions=rows, columns=columns, dtype=dtype, start=start)
    k.dma(tile[:, :], k.hbm(f"{name}_hbm", bits.shape, dtype, bits)[:, :])
    return tile[:, :], bits


def out(k: Kernel, view: TileView) -> None:
    """PSUM to the tensor `y` in HBM."""
    shape = (view.partitions, view.elements)
    tile = k.sbuf("out", partitions=shape[0], columns=shape[1], dtype="fp32")
    k.vector.copy(tile[:, :], view)
    k.dma(k.hbm("y", shape, "fp32")[:, :], tile[:, :])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("dtype", "shift"), [("fp32", 0), ("bf16", 16), ("fp16", 16)])
def test_bits_of_every_format(dtype: str, shift: int, seed: int | None):
    k = Kernel(TINY, "t")
    x, bits = given(k, "x", dtype, 8, 5)
    turned = k.psum("turned", partitions=5, columns=8)
    k.tensor.transpose(x, turned[:, :])
    out(k, turned[:, :])
    assert np.array_equal(run(k, "y", seed), bits.T.astype(np.uint32) << shift)


def test_a_destination_with_steps_and_axes():
    k = Kernel(TINY, "t")
    x, bits = given(k, "x", "fp32", 6, 4)
    turned = k.psum("turned", partitions=4, columns=16)
    k.vector.memset(turned[:, :], 1.0)
    k.tensor.transpose(x, turned[:, 1:13].split(0, 4)[:, :, ::2].permute((1, 0)))
    out(k, turned[:, :])
    y = run(k, "y")
    assert np.array_equal(y[:, [1, 5, 9, 3, 7, 11]], bits.T)
    assert np.all(np.delete(y, [1, 5, 9, 3, 7, 11], axis=1) == 0x3F80_0000)


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_stay_for_matmuls_behind_it(seed: int | None):
    k = Kernel(TINY, "t")
    (w, _), (x, _), (t, bits) = (
        given(k, name, dtype, 8, 8) for name, dtype in (("w", "e4m3fn"), ("x", "e4m3fn"), ("t", "fp32"))
    )
    sums = [k.psum(f"sums{i}", partitions=8, columns=8, align=TINY.psum.bank_bytes) for i in range(2)]
    turned = k.psum("turned", partitions=8, columns=8, align=TINY.psum.bank_bytes)
    k.tensor.load(w)
    k.tensor.matmul(x, sums[0][:, :])
    k.tensor.transpose(t, turned[:, :])
    k.tensor.matmul(x, sums[1][:, :])
    both = k.sbuf("both", partitions=8, columns=24, dtype="fp32")
    for i, tile in enumerate((*sums, turned)):
        k.vector.copy(both[:, 8 * i : 8 * i + 8], tile[:, :])
    k.dma(k.hbm("y", (8, 24), "fp32")[:, :], both[:, :])
    y = run(k, "y", seed)
    assert np.array_equal(y[:, :8], y[:, 8:16]) and np.array_equal(y[:, 16:], bits.T)


def test_tiles_and_banks():
    """A transpose and a matmul of one tile wait for each other in a bank; in banks of their own they do not."""
    k = Kernel(TILED, "t")
    x, bits = given(k, "x", "bf16", 8, 8, start=8)
    w, _ = given(k, "w", "bf16", 8, 8, start=0)
    sums = k.psum("sums", partitions=8, columns=8)
    near = k.psum("near", partitions=8, columns=8)
    far = k.psum("far", partitions=8, columns=8, align=TILED.psum.bank_bytes)
    k.tensor.load(x, tiles=4)
    k.tensor.matmul(x, sums[:, :], tiles=4)
    k.tensor.transpose(x, far[:, :], tiles=4)
    k.tensor.transpose(x, near[:, :], tiles=4)
    queue = [i for i in k.program().queues[Queue.TENSOR] if i.opcode != Opcode.NOP]
    assert [bool(i.waits) for i in queue[1:]] == [False, False, True]
    with pytest.raises(KernelError, match="a transpose on tile 0 of 4 writes far in PSUM bank 1, where one on tile 1"):
        k.tensor.transpose(w, far[:, :], tiles=4)
    k.tensor.load(w, tiles=4)
    with pytest.raises(KernelError, match="a matmul on tile 0 of 4 writes far in PSUM bank 1, where a transpose on"):
        k.tensor.matmul(w, far[:, :], tiles=4)
    out(k, near[:, :])
    assert np.array_equal(run(k, "y"), bits.T.astype(np.uint32) << 16)


WRONG: list[tuple[str, Callable[[Kernel, dict[str, TileView]], None]]] = [
    ("operand s of a transpose lies in PSUM", lambda k, t: k.tensor.transpose(t["s"], t["s"])),
    ("operand q is e4m3fn; the array transposes fp32, bf16, fp16", lambda k, t: k.tensor.transpose(t["q"], t["s"])),
    (
        "operand x has 16 columns and ends at partition 7; the array transposes at most 8 rows by 8 columns",
        lambda k, t: k.tensor.transpose(t["x"], t["s"]),
    ),
    (
        "a transpose of 5 columns writes to 5 PSUM partitions from 0, not to 8 PSUM partitions from 0",
        lambda k, t: k.tensor.transpose(t["x"][:, :5], t["s"]),
    ),
    (
        "a transpose of 8 columns writes to 8 PSUM partitions from 0, not to 8 SBUF partitions from 0",
        lambda k, t: k.tensor.transpose(t["x"][:, :8], t["x"][:, :8]),
    ),
    (
        "a transpose of 4 partitions writes 4 elements, not 8",
        lambda k, t: k.tensor.transpose(t["x"][:4, :8], t["s"]),
    ),
    ("2 tiles need 2 row groups; tiny has 1", lambda k, t: k.tensor.transpose(t["x"][:, :8], t["s"], tiles=2)),
]


@pytest.mark.parametrize(("sentence", "say"), WRONG, ids=lambda x: x[:30] if isinstance(x, str) else "")
def test_refused(sentence: str, say: Callable[[Kernel, dict[str, TileView]], None]):
    k = Kernel(TINY, "t")
    tiles = {
        "x": k.sbuf("x", partitions=8, columns=16, dtype="bf16")[:, :],
        "q": k.sbuf("q", partitions=8, columns=8, dtype="e4m3fn")[:, :],
        "s": k.psum("s", partitions=8, columns=8)[:, :],
    }
    with pytest.raises(KernelError, match=sentence):
        say(k, tiles)


def test_a_load_waits_for_its_matmul_first():
    k = Kernel(TINY, "t")
    x, _ = given(k, "x", "bf16", 8, 8)
    sums = [k.psum(f"s{i}", partitions=8, columns=8, align=TINY.psum.bank_bytes)[:, :] for i in range(2)]
    k.tensor.load(x)
    with pytest.raises(KernelError, match="a transpose of x on the whole array would overwrite the stationary"):
        k.tensor.transpose(x, sums[1])
    k.tensor.matmul(x, sums[0])
    k.tensor.transpose(x, sums[1])


def test_bytes_of_a_tile_in_another_format():
    k = Kernel(TINY, "t")
    tile = k.sbuf("x", partitions=8, columns=3, dtype="fp32")
    halves = tile.reinterpret("bf16")
    assert (halves.columns, halves.dtype, halves.offset) == (6, "bf16", tile.offset)
    with pytest.raises(KernelError, match="odd has 6 bytes of each partition, no whole number of fp32 elements"):
        k.sbuf("odd", partitions=8, columns=3, dtype="bf16").reinterpret("fp32")
