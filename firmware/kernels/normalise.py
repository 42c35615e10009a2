"""LayerNorm and RMSNorm of rows on partitions, and the workload `layernorm`.

The vector engine takes mean and variance in one pass (pieces of at most 512 elements, merged) and applies them with
gain and shift in two; the root is a function of the scalar engine's table. RMSNorm takes its sum of squares on the
scalar engine, so that the vector engine passes once. Both work in place where x and the result are FP32.
"""

from typing import Any

import numpy as np

from firmware.kernel import Kernel, KernelError, TileView
from firmware.kernels.gemm import product_metrics
from firmware.kernels.spans import spans
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["NormScratch", "layer_norm", "normalise", "rms_norm"]

STATISTICS_MAX = 512  # elements of one BN_STATS
EPSILON = 1e-5
SETS = 2  # tiles of rows under way


class NormScratch:
    """Columns and statistics that a norm of `width` columns needs on `partitions` partitions, one set.

    work: format of a whole row of intermediate values; fp32 for a LayerNorm whose result is narrower, any for RMSNorm.
    """

    def __init__(self, k: Kernel, name: str, partitions: int, width: int, work: str | None = None):
        self.cuts = spans(width, STATISTICS_MAX)
        self.statistics = k.sbuf(f"{name}_statistics", partitions=partitions, columns=6 * len(self.cuts), dtype="fp32")
        self.moments = k.sbuf(f"{name}_moments", partitions=partitions, columns=2, dtype="fp32")
        self.scale = k.sbuf(f"{name}_scale", partitions=partitions, columns=1, dtype="fp32")
        self.work = k.sbuf(f"{name}_work", partitions=partitions, columns=width, dtype=work) if work else None


def layer_norm(
    k: Kernel, out: TileView, x: TileView, gain: TileView, shift: TileView, scratch: NormScratch, epsilon: float
) -> None:
    """out = (x - mean) / sqrt(variance + epsilon) * gain + shift. Needs the function rsqrt in the table."""
    rows = slice(0, x.partitions)
    for i, cut in enumerate(scratch.cuts):
        k.vector.bn_stats(scratch.statistics[rows, 6 * i : 6 * i + 6], x[:, cut.start : cut.stop])
    moments = scratch.moments[rows, :]
    k.vector.bn_aggr(moments, scratch.statistics[rows, :])
    scale = scratch.scale[rows, :]
    k.scalar.activation(scale, moments[:, 1:2], "rsqrt", bias=epsilon)
    work = scratch.work[rows, :] if scratch.work else out
    k.vector.scalar_tensor_tensor(work, x, "subtract", moments[:, 0:1], "multiply", gain)
    k.vector.scalar_tensor_tensor(out, work, "multiply", scale, "add", shift)


def rms_norm(k: Kernel, out: TileView, x: TileView, gain: TileView, scratch: NormScratch, epsilon: float) -> None:
    """out = x / sqrt(mean of squares + epsilon) * gain. Needs the function rsqrt in the table."""
    rows = slice(0, x.partitions)
    total, scale = scratch.moments[rows, 0:1], scratch.scale[rows, :]
    assert scratch.work is not None
    k.scalar.activation(scratch.work[rows, :], x, "square", reduce="reset_reduce", store=total)
    k.scalar.activation(scale, total, "rsqrt", scale=1 / x.elements, bias=epsilon)
    k.vector.scalar_tensor_tensor(out, x, "multiply", scale, "multiply", gain)


def normalise(
    cfg: Config, x: np.ndarray, gain: np.ndarray, shift: np.ndarray, *, rms: bool = False, dtype: str = "bf16"
) -> Program:
    """A program for float32 rows [rows, columns] rounded to `dtype`, gain and shift [columns] in FP32.

    rms: RMSNorm, which has no mean and no shift. Output: `y` in `dtype`. Errors: KernelError.
    """
    kind = "rmsnorm" if rms else "layernorm"
    rows, width = x.shape
    if min(rows, width) < 1:
        raise KernelError(f"{kind} needs at least one row and one column, not {rows} and {width}")
    k = Kernel(cfg, kind)
    bits = encode(x, dtype)
    source = k.hbm("x", (rows, width), dtype, bits)
    target = k.hbm("y", (rows, width), dtype)
    tall = min(rows, cfg.partitions)
    vectors: list[TileView] = []
    for name, values in (("gain", gain),) if rms else (("gain", gain), ("shift", shift)):
        tile = k.sbuf(name, partitions=tall, columns=width, dtype="fp32")
        data = k.hbm(f"{name}_row", (width,), "fp32", encode(values, "fp32"))
        k.dma(tile[:, :], data.repeat(tall))
        vectors.append(tile[:, :])
    k.scalar.load_table(["rsqrt"])
    tiles = spans(rows, cfg.partitions)
    work = dtype if rms else None if dtype == "fp32" else "fp32"
    sets = [
        (
            k.sbuf(f"x{i}", partitions=tall, columns=width, dtype=dtype),
            NormScratch(k, f"norm{i}", tall, width, work),
        )
        for i in range(min(SETS, len(tiles)))
    ]
    for i, tile in enumerate(tiles):
        held, scratch = sets[i % len(sets)]
        part = held[: tile.size, :]
        rows_of_tile = [v[: tile.size, :] for v in vectors]
        k.dma(part, source[tile.start : tile.stop, :])
        if rms:
            rms_norm(k, part, part, rows_of_tile[0], scratch, EPSILON)
        else:
            layer_norm(k, part, part, rows_of_tile[0], rows_of_tile[1], scratch, EPSILON)
        k.dma(target[tile.start : tile.stop, :], part)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Against float64 of the rounded rows."""
        exact = decode(bits, dtype).astype(np.float64)
        if not rms:
            exact = exact - exact.mean(axis=1, keepdims=True)
        exact = exact / np.sqrt((exact**2).mean(axis=1, keepdims=True) + EPSILON) * gain
        return product_metrics(decode(outputs["y"], dtype), exact if rms else exact + shift)

    return k.program(notes=[f"the host rounds the rows to {dtype}; gain and shift are FP32"], metrics=metrics)
