"""Kernels whose runs decide, and what each must leave: pages of a cache by a table, blocks that a run has counted."""

import numpy as np

from firmware.kernel import Kernel
from firmware.program import Program
from rtl.contract.config import named
from rtl.contract.isa import Queue

__all__ = ["PAGES", "counted", "paged", "sum_of_blocks", "where_pages_go"]

_CFG = named("tiny")
P = _CFG.partitions
PAGES = 6


def _cache() -> np.ndarray:
    return np.arange(PAGES * P * 16, dtype=np.uint16).reshape(PAGES, P, 16)


def _blocks() -> np.ndarray:
    return np.arange(4 * P * 8, dtype=np.float32).reshape(4, P, 8)


def paged(table: list[int], live: int) -> Program:
    """The first `live` pages of `table` go from a cache to y in its order, and half of each to its own place in z."""
    k = Kernel(_CFG, "paged")
    numbers = _cache()
    cache = k.hbm("cache", numbers.shape, "bf16", numbers)
    pages = k.hbm("table", (4,), "int32", np.array(table, np.uint32))
    count = k.hbm("live", (1,), "int32", np.array([live], np.uint32))
    y, z = k.hbm("y", (4, P, 16), "bf16"), k.hbm("z", (2, PAGES // 2, P, 16), "bf16")
    tiles = [k.sbuf(f"tile{n}", partitions=P, columns=16, dtype="bf16") for n in range(2)]
    zero = k.sbuf("zero", partitions=P, columns=16, dtype="bf16")
    k.vector.memset(zero[:, :], 0.0)
    for n in range(PAGES):
        k.dma(z[n // 3, n % 3, :, :], zero[:, :])
    for n in range(4):
        k.dma(y[n, :, :], zero[:, :])
    found = [k.register(pages[n : n + 1], PAGES - 1) for n in range(4)]
    with k.loop(k.register(count, 4)) as i:
        page, tile = k.pick(found, i), k.pick(tiles, i % 2)
        k.dma(tile[:, :], cache[page, :, :])
        k.dma(y[i, :, :], tile[:, :])
        # two axes of three pages: page // 3 by comparisons, for registers are divided by powers of two
        with k.if_(page < 3):
            k.dma(z[0, page.at_most(2), :, 0:8], tile[:, 0:8], queue=Queue.SCALAR)
        with k.if_(page >= 3):
            k.dma(z[1, (page - 3).at_least(0), :, 0:8], tile[:, 0:8], queue=Queue.SCALAR)
    return k.program()


def where_pages_go(table: list[int], live: int) -> tuple[np.ndarray, np.ndarray]:
    """What `paged` must leave in y and z."""
    numbers = _cache()
    y, z = np.zeros((4, P, 16), np.uint16), np.zeros((PAGES, P, 16), np.uint16)
    for n, page in enumerate(table[:live]):
        y[n], z[page, :, :8] = numbers[page], numbers[page, :, :8]
    return y, z.reshape(2, PAGES // 2, P, 16)


def counted(flags: list[int]) -> Program:
    """As many blocks of x are added up as flags are 1; the vector engine counts them."""
    k = Kernel(_CFG, "counted")
    x = k.hbm("x", (4 * P, 8), "fp32", _blocks().view(np.uint32).reshape(-1, 8))
    given = k.hbm("flags", (1, 8), "fp32", np.array([flags], np.float32).view(np.uint32))
    y = k.hbm("y", (P, 8), "fp32")
    number = k.hbm("n", (1,), "int32", inner=True)
    loaded = k.sbuf("loaded", partitions=1, columns=8, dtype="fp32")
    count = k.sbuf("count", partitions=1, columns=1, dtype="int32")
    sums = k.sbuf("sums", partitions=P, columns=8, dtype="fp32")
    tiles = [k.sbuf(f"tile{n}", partitions=P, columns=8, dtype="fp32") for n in range(2)]
    k.dma(loaded[:, :], given)
    k.vector.memset(sums[:, :], 0.0)
    k.vector.reduce(count[:, :], loaded[:, :], "add")
    k.dma(number.split(0, 1), count[:, :])
    with k.loop(k.register(number, 4)) as i:
        tile = k.pick(tiles, i % 2)
        k.dma(tile[:, :], x[i * P : (i + 1) * P, :])
        k.vector.tensor_tensor(sums[:, :], sums[:, :], "add", tile[:, :])
    k.dma(y[:, :], sums[:, :])
    return k.program()


def sum_of_blocks(count: int) -> np.ndarray:
    """What `counted` must leave in y, FP32."""
    return _blocks()[:count].sum(axis=0)
