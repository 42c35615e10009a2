"""Workload `softmax`: of each row of random values, rows on partitions, plain or online.

Plain: maximum, exponentials with their sum, reciprocal, product; four instructions a tile. Online: the row is cut
in blocks, maximum and sum run along, and a second pass makes the results; for rows of which one block at a time
is at hand.
"""

from typing import Any

import numpy as np

from firmware.kernel import Kernel, KernelError, TileView
from firmware.kernels.gemm import product_metrics
from firmware.kernels.spans import spans
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["online_softmax", "plain_softmax", "softmax"]

SETS = 2  # tiles of rows under way


def plain_softmax(k: Kernel, out: TileView, x: TileView, columns: dict[str, TileView]) -> None:
    """out = softmax of each partition of x; `columns`: FP32 [partitions, 1] tiles top, total and inverse."""
    k.vector.reduce(columns["top"], x, "max")
    k.vector.exp(out, x, columns["top"], reduce="reset_reduce", store=columns["total"])
    k.vector.reciprocal(columns["inverse"], columns["total"])
    k.vector.tensor_scalar(out, out, "multiply", columns["inverse"])


def online_softmax(k: Kernel, out: TileView, x: TileView, columns: dict[str, TileView], block: int) -> None:
    """The same in blocks of `block` columns; `columns` has also maximum0, maximum1, shrink and before."""
    cuts = spans(x.elements, block)
    for i, cut in enumerate(cuts):
        part, scratch = (v[:, cut.start : cut.stop] for v in (x, out))
        now, earlier = columns[f"maximum{i % 2}"], columns[f"maximum{(i + 1) % 2}"]
        if i == 0:
            k.vector.reduce(now, part, "max")
            k.vector.exp(scratch, part, now, reduce="reset_reduce", store=columns["total"])
            continue
        k.vector.reduce(columns["top"], part, "max")
        k.vector.tensor_tensor(now, earlier, "max", columns["top"])
        k.vector.exp(columns["shrink"], earlier, now)
        k.vector.tensor_tensor(columns["before"], columns["total"], "multiply", columns["shrink"])
        k.vector.exp(scratch, part, now, reduce="load_reduce", init=columns["before"], store=columns["total"])
    maximum = columns[f"maximum{(len(cuts) - 1) % 2}"]
    k.vector.reciprocal(columns["inverse"], columns["total"])
    for cut in cuts:
        part, result = (v[:, cut.start : cut.stop] for v in (x, out))
        k.vector.exp(result, part, maximum)
        k.vector.tensor_scalar(result, result, "multiply", columns["inverse"])


def softmax(cfg: Config, x: np.ndarray, *, dtype: str = "bf16", online: int = 0) -> Program:
    """A program for float32 rows [rows, columns], rounded to `dtype`; online: columns of a block, 0 for plain.

    Output: `y` in `dtype`. Errors: KernelError.
    """
    rows, width = x.shape
    if min(rows, width) < 1:
        raise KernelError(f"softmax needs at least one row and one column, not {rows} and {width}")
    k = Kernel(cfg, "softmax")
    bits = encode(x, dtype)
    source = k.hbm("x", (rows, width), dtype, bits)
    target = k.hbm("y", (rows, width), dtype)
    tiles = spans(rows, cfg.partitions)
    tall = min(rows, cfg.partitions)
    names = ("top", "total", "inverse") + (("maximum0", "maximum1", "shrink", "before") if online else ())
    sets = [
        (
            k.sbuf(f"x{i}", partitions=tall, columns=width, dtype=dtype),
            k.sbuf(f"y{i}", partitions=tall, columns=width, dtype=dtype),
            {n: k.sbuf(f"{n}_{i}", partitions=tall, columns=1, dtype="fp32") for n in names},
        )
        for i in range(min(SETS, len(tiles)))
    ]
    for i, tile in enumerate(tiles):
        given, made, scratch = sets[i % len(sets)]
        a, b = given[: tile.size, :], made[: tile.size, :]
        columns = {n: c[: tile.size, :] for n, c in scratch.items()}
        k.dma(a, source[tile.start : tile.stop, :])
        if online:
            online_softmax(k, b, a, columns, online)
        else:
            plain_softmax(k, b, a, columns)
        k.dma(target[tile.start : tile.stop, :], b)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Against float64 softmax of the rounded rows."""
        exact = decode(bits, dtype).astype(np.float64)
        exact = np.exp(exact - exact.max(axis=1, keepdims=True))
        return product_metrics(decode(outputs["y"], dtype), exact / exact.sum(axis=1, keepdims=True))

    return k.program(notes=[f"the host rounds the rows to {dtype}"], metrics=metrics)
