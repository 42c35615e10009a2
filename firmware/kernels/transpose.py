"""Workload `transpose`: y = x^T of random bits, by the array or by the vector engine.

Array: tiles of x go through the shadow weights and come out in PSUM, bit for bit; the vector engine takes them away.
Vector engine: blocks of 32 x 32 are transposed where they stand, and each goes to its place on the way to HBM.
Identity: a tile of x is stationary, the identity moves, the scalar engine takes x^T out of PSUM; finite BF16 only.
"""

from typing import Any

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError
from firmware.kernels.identity import identity
from firmware.kernels.spans import spans
from firmware.program import Program
from rtl.contract.config import Config
from rtl.contract.isa import block

__all__ = ["ENGINES", "TRANSPOSED_FORMATS", "transpose"]

ENGINES = ("tensor", "vector", "identity")
TRANSPOSED_FORMATS = ("bf16", "fp16", "fp32")
SETS = 2  # tiles under way


def transpose(cfg: Config, bits: np.ndarray, *, dtype: str = "bf16", engine: str = "tensor") -> Program:
    """A program for x [rows, columns], given as bits. Output: `y` [columns, rows] of the same format. KernelError."""
    if engine not in ENGINES:
        raise KernelError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    if engine == "identity" and dtype != "bf16":
        raise KernelError(f"a product with the identity transposes bf16, not {dtype}")
    rows, columns = bits.shape
    if min(rows, columns) < 1:
        raise KernelError(f"transpose needs at least one row and one column, not {rows} and {columns}")
    k = Kernel(cfg, "transpose")
    source, target = k.hbm("x", (rows, columns), dtype, bits), k.hbm("y", (columns, rows), dtype)
    {"tensor": _by_array, "vector": _by_vector, "identity": _by_identity}[engine](k, source, target)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """How many elements are not what they should be, bit for bit."""
        return {"wrong_elements": int(np.count_nonzero(outputs["y"] != bits.T))}

    return k.program(metrics=metrics)


def _by_array(k: Kernel, source: HbmView, target: HbmView) -> None:
    rows, columns = source.shape
    cfg, dtype = k.cfg, source.dtype
    tall, wide = cfg.tensor.rows, cfg.tensor.cols
    given = [k.sbuf(f"given{i}", partitions=tall, columns=columns, dtype=dtype) for i in range(SETS)]
    turned = [k.psum(f"turned{i}", partitions=wide, columns=tall, align=cfg.psum.bank_bytes) for i in range(SETS)]
    words = [k.sbuf(f"words{i}", partitions=wide, columns=tall, dtype="fp32") for i in range(SETS)]
    made = [k.sbuf(f"made{i}", partitions=wide, columns=tall, dtype=dtype) for i in range(SETS)]
    count = 0
    for i, r in enumerate(spans(rows, tall)):
        held = given[i % SETS][: r.size, :]
        k.dma(held, source[r.start : r.stop, :])
        for c in spans(columns, wide):
            tile, word, out = (tiles[count % SETS] for tiles in (turned, words, made))
            count += 1
            k.tensor.transpose(held[:, c.start : c.stop], tile[: c.size, : r.size])
            result = word[: c.size, : r.size]
            k.vector.copy(result, tile[: c.size, : r.size])
            if dtype != "fp32":  # the upper halves; a copy of equal formats keeps the payload of a NaN
                result = out[: c.size, : r.size]
                k.vector.copy(result, word.reinterpret(dtype)[: c.size, 1 : 2 * r.size : 2])
            k.dma(target[c.start : c.stop, r.start : r.stop], result)


def _by_identity(k: Kernel, source: HbmView, target: HbmView) -> None:
    rows, columns = source.shape
    cfg = k.cfg
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    whole = identity(k)
    one = k.sbuf("one", partitions=size, columns=size, dtype="bf16")
    k.dma(one[:, :], whole[:, :])
    given = [k.sbuf(f"given{i}", partitions=size, columns=columns, dtype="bf16") for i in range(SETS)]
    turned = [k.psum(f"turned{i}", partitions=size, columns=size, align=cfg.psum.bank_bytes) for i in range(SETS)]
    made = [k.sbuf(f"made{i}", partitions=size, columns=size, dtype="bf16") for i in range(SETS)]
    count = 0
    for i, r in enumerate(spans(rows, size)):
        held = given[i % SETS][: r.size, :]
        k.dma(held, source[r.start : r.stop, :])
        for c in spans(columns, size):
            sums, out = (tiles[count % SETS][: c.size, : r.size] for tiles in (turned, made))
            count += 1
            k.tensor.load(held[:, c.start : c.stop])
            k.tensor.matmul(one[: r.size, : r.size], sums, part="transpose")
            k.scalar.copy(out, sums)
            k.dma(target[c.start : c.stop, r.start : r.stop], out)


def _by_vector(k: Kernel, source: HbmView, target: HbmView) -> None:
    rows, columns = source.shape
    q, tall = block(k.cfg.partitions), k.cfg.partitions
    wide = -(-columns // q) * q
    given, made = (
        [k.sbuf(f"{name}{i}", partitions=tall, columns=wide, dtype=source.dtype) for i in range(SETS)]
        for name in ("given", "made")
    )
    for i, r in enumerate(spans(rows, tall)):
        held, out = given[i % SETS], made[i % SETS]
        blocks = -(-r.size // q)
        k.dma(held[: r.size, :columns], source[r.start : r.stop, :])
        k.vector.transpose(out[: blocks * q, :], held[: blocks * q, :])
        for g, part in enumerate(spans(r.size, q)):
            at = slice(r.start + part.start, r.start + part.stop)
            full = columns // q
            if full:
                placed = target[: full * q, at].split(0, q).permute((1, 0, 2))
                k.dma(placed, out[g * q : (g + 1) * q, : full * q].split(0, q)[:, :, : part.size])
            if columns % q:
                rest = out[g * q : g * q + columns % q, full * q : full * q + part.size]
                k.dma(target[full * q :, at], rest)
