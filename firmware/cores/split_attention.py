"""Workload `split_attention`: attention of many heads, some heads a core; core 0 ends up with the results of all.

Each core has the queries of its heads, and the keys and values that they use, in its own HBM, and does with them what
the workload `attention` does alone. The other cores send each tile of results, as soon as it is divided, to SBUF of
core 0 (`Stream`), which stores it behind those of its own heads.

Heads share nothing, so the bits can be those of one core with all heads. They are if only the last block of the last
core has its exponentials in pieces, as the last one of a core alone has: their sums are rounded in another order.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from firmware.cores.ensemble import Ensemble, Mark, numbered
from firmware.cores.head_shares import head_shares
from firmware.cores.stream import Stream, note
from firmware.kernel import Kernel
from firmware.kernels.attention_heads import AttentionHeads
from firmware.kernels.attention_inputs import AttentionInputs
from firmware.kernels.gemm import product_metrics
from firmware.kernels.spans import Span
from firmware.numbers import decode
from firmware.program import Completion
from firmware.views import HbmView, TileView
from rtl.contract.config import Config
from rtl.contract.isa import Queue

__all__ = ["split_attention"]


class _Gathering:
    """What core 0 does with tiles: `y` has the heads of all cores in their order."""

    def __init__(self, k: Kernel, y: HbmView, streams: list[Stream], heads: int):
        self.k, self.y, self.streams, self.heads = k, y, streams, heads
        self.arrived: list[Mark] = []
        self.own: list[Mark] = []
        self._stored: list[Completion] = []  # of each stream, the tile before

    def store(self, head: int, queries: Span, tile: TileView) -> None:
        """Store a tile of this core, then the same one of the others, who have as much to do and are as far."""
        rows = slice(queries.start, queries.stop)
        self.k.dma(self.y[head, rows, :], tile)
        self.own.append(self._mark())
        before, self._stored = self._stored, []
        for n, stream in enumerate(self.streams):
            # Only now: it has been stored since, so the queue does not wait for that.
            if before:
                stream.release(before[n])
            come = stream.receive(Queue.GPSIMD, queries.size, self.y.shape[2])
            self.arrived.append(self._mark())
            self._stored.append(self.k.dma(self.y[(n + 1) * self.heads + head, rows, :], come))

    def _mark(self) -> Mark:
        return Mark(self.k.core, Queue.GPSIMD, self.k.items(Queue.GPSIMD) - 1)


def split_attention(
    cfg: Config,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    cores: int = 2,
    causal: bool = False,
    buffers: int = 2,
) -> Ensemble:
    """Programs for float32 q [heads, queries, head], k [key heads, keys, head], v [key heads, keys, values] in BF16,
    split by heads; core n is core n of chip 0.

    Output: `y` of core 0, the bytes of `context` of `attention`: FP32 [heads, queries, values]; the single queries of
    heads that share keys in a core are one axis. buffers: places in core 0 for tiles of each other core. Marks: `own`,
    when core 0 has released the store of each of its tiles; `arrived`, when it has noticed each tile of others. Errors:
    KernelError.
    """
    whole = AttentionInputs.of(q, k, v, causal=causal)
    shares = head_shares(q.shape[0], k.shape[0], q.shape[1], cores)
    parts = [AttentionInputs.of(q[own], k[shared], v[shared], causal=causal) for own, shared in shares]
    kernels = [Kernel(cfg, f"heads{n}", numbered(cfg, n)) for n in range(cores)]
    heads, queries, values = parts[0].context_shape
    work = [AttentionHeads(kernel, part) for kernel, part in zip(kernels, parts, strict=True)]
    y = kernels[0].hbm("y", (cores * heads, queries, values), "fp32")
    notes = [note(kernel) for kernel in kernels] if cores > 1 else []
    rows = min(cfg.tensor.rows, cfg.tensor.cols, queries)
    streams = [
        Stream(
            kernels[n], kernels[0], notes=(notes[n], notes[0]), partitions=rows, columns=values, buffers=buffers,
            name=str(n),
        )
        for n in range(1, cores)
    ]  # fmt: skip
    gathering = _Gathering(kernels[0], y, streams, heads)
    work[0].run(work[0].start(), gathering.store, cut_last=cores == 1)
    for n, stream in enumerate(streams, 1):
        work[n].run(
            work[n].start(), lambda head, queries, tile, stream=stream: stream.send(tile), cut_last=n == cores - 1
        )

    def metrics(outputs: Mapping[tuple[int, str], np.ndarray]) -> dict[str, Any]:
        """The result against float64 attention of the rounded operands."""
        return product_metrics(decode(outputs[kernels[0].core, "y"], "fp32"), whole.exact())

    return Ensemble(
        programs=tuple(kernel.program(macs=part.macs) for kernel, part in zip(kernels, parts, strict=True)),
        truth={},
        marks={"own": tuple(gathering.own), "arrived": tuple(gathering.arrived)},
        metrics=metrics,
    )
