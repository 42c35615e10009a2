"""Workload `rope`: rotary positions. Of each head the two halves are turned by an angle of the token and the pair:
(x1, x2) to (x1 cos - x2 sin, x2 cos + x1 sin).

The host makes the tables of cos and sin, a row a token, which all heads share. Tokens lie on partitions, heads beside
each other; of fewer tokens than partitions (one, if a token is decoded) the heads lie on partitions.
Source: Su et al., "RoFormer", section 3.4.2, with the halves paired as in Llama and most later models.
"""

from typing import Any

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError, TileView
from firmware.kernels.gemm import product_metrics
from firmware.kernels.spans import spans
from firmware.numbers import decode, element_bytes, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["WORK_FORMATS", "angles", "rope"]

WORK_FORMATS = ("bf16", "fp32")
SETS = 2  # tiles under way
MARGIN_BYTES = 256  # of a partition, for the beginnings of tiles


def angles(positions: np.ndarray, head: int, theta: float) -> np.ndarray:
    """Angle of each position and pair, float64 [positions, head / 2]: position / theta^(2 pair / head)."""
    return positions[:, None] / theta ** (np.arange(0, head, 2) / head)


def _turn(
    k: Kernel, out: TileView, x: TileView, cos: TileView, sin: TileView, parts: list[TileView], head: int
) -> None:
    """out = x turned, [rows, heads * head]; cos, sin [rows, head / 2]; parts: room for two halves of x."""
    heads = x.elements // head
    low, high = ([v.split(0, head).split(1, head // 2)[:, :, n : n + 1, :] for v in (x, out)] for n in range(2))
    every = [table if heads == 1 else table.repeat(heads) for table in (cos, sin)]
    for (target, first, second), how in ((low[1], low[0], high[0]), "subtract"), ((high[1], high[0], low[0]), "add"):
        k.vector.tensor_tensor(parts[0], first, "multiply", every[0])
        k.vector.tensor_tensor(parts[1], second, "multiply", every[1])
        k.vector.tensor_tensor(target, parts[0], how, parts[1])


def rope(cfg: Config, x: np.ndarray, *, first: int = 0, theta: float = 10000.0, work: str = "bf16") -> Program:
    """A program for float32 x [tokens, heads, head] in BF16, tokens from position `first` on; `work`: format of tables
    and products.

    Output: `y` [tokens, heads * head] in BF16. Error, against exact angles: at most 3 x 2^-8 (|x1| + |x2|) with BF16,
    a rounding of the result with FP32. Errors: KernelError.
    """
    tokens, heads, head = x.shape
    if min(x.shape) < 1 or head % 2:
        raise KernelError(f"rope needs at least a token, a head, and an even number of dimensions, not {x.shape}")
    if work not in WORK_FORMATS:
        raise KernelError(f"work must be one of {', '.join(WORK_FORMATS)}, not {work!r}")
    k = Kernel(cfg, "rope")
    bits = encode(x, "bf16")
    across = heads if tokens >= cfg.partitions else 1  # heads beside each other on a partition
    rows, width = tokens * heads // across, across * head
    source = k.hbm("x", (rows, width), "bf16", bits.reshape(rows, width))
    target = k.hbm("y", (rows, width), "bf16")
    turns = angles(np.arange(first, first + tokens), head, theta)
    tables: list[HbmView] = []
    for name, function in (("cos", np.cos), ("sin", np.sin)):
        values = np.repeat(function(turns).astype(np.float32), heads // across, axis=0)
        tables.append(k.hbm(name, values.shape, work, encode(values, work)))
    size = element_bytes(work)
    each = 2 * 2 * head + size * head  # bytes of x, y and two products, of one head
    room = (k.sbuf_free() - MARGIN_BYTES) // SETS - size * head
    together = min(across, room // each)
    if together < 1:
        raise KernelError(f"rope needs {each} bytes of each SBUF partition for a head of {head}, and {room} are free")
    tall = min(rows, cfg.partitions)

    def tile(name: str, number: int, columns: int, dtype: str) -> TileView:
        return k.sbuf(f"{name}{number}", partitions=tall, columns=columns, dtype=dtype)[:, :]

    sets = [
        {
            **{n: tile(n, i, together * head, "bf16") for n in ("x", "y")},
            **{n: tile(n, i, together * head // 2, work) for n in ("cosine", "sine")},
            **{n: tile(n, i, head // 2, work) for n in ("cos", "sin")},
        }
        for i in range(SETS)
    ]
    number = 0
    for part in spans(rows, cfg.partitions):
        held = sets[number % SETS]
        places = [held[n][: part.size, :] for n in ("cos", "sin")]
        for place, table in zip(places, tables, strict=True):
            k.dma(place, table[part.start : part.stop, :])
        for some in spans(across, together):
            now = sets[number % SETS]
            number += 1
            columns = slice(some.start * head, some.stop * head)
            given, made = (now[n][: part.size, : some.size * head] for n in ("x", "y"))
            halves = [now[n][: part.size, : some.size * head // 2] for n in ("cosine", "sine")]
            k.dma(given, source[part.start : part.stop, columns])
            _turn(k, made, given, places[0], places[1], halves, head)
            k.dma(target[part.start : part.stop, columns], made)

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Against float64 of the rounded x and exact angles."""
        one, two = np.split(decode(bits, "bf16").astype(np.float64), 2, axis=2)
        cos, sin = np.cos(turns)[:, None], np.sin(turns)[:, None]
        exact = np.concatenate([one * cos - two * sin, two * cos + one * sin], axis=2)
        return product_metrics(decode(outputs["y"], "bf16").reshape(exact.shape), exact)

    notes = [f"tables of cos and sin, and products, are {work}; the host makes the tables"]
    if across == 1 and heads > 1:
        notes.append("a head lies on a partition, and the tables are there for each of them")
    return k.program(notes=notes, metrics=metrics)
