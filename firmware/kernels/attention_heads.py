"""Attention of all heads that a core has: operands from its HBM, finished tiles in its SBUF for others to take away."""

from collections.abc import Callable

import numpy as np

from firmware.kernel import Kernel, Tile, TileView
from firmware.kernels.attention_core import Attention, Result
from firmware.kernels.attention_inputs import AttentionInputs
from firmware.kernels.attention_operands import Operands
from firmware.kernels.identity import identity
from firmware.kernels.spans import Span
from firmware.numbers import encode

__all__ = ["STAGES", "AttentionHeads"]

STAGES = 3
"""Results on their way out of SBUF."""


class AttentionHeads:
    """Its operands lie in HBM from the beginning; `start` takes PSUM and SBUF, `run` emits everything."""

    def __init__(self, k: Kernel, given: AttentionInputs):
        self.k, self.given = k, given
        self._q_t, self._k_t = (
            k.hbm(f"{name}_t", (b.shape[0], b.shape[2], b.shape[1]), "bf16", np.ascontiguousarray(b.swapaxes(1, 2)))
            for name, b in (("q", given.q), ("k", given.k))
        )
        self._v = k.hbm("v", given.v.shape, "bf16", np.ascontiguousarray(given.v))
        self._stages: list[Tile] = []

    def start(self, dtype: str = "fp32") -> Attention:
        """Take PSUM, and SBUF but for operands. dtype: of finished tiles. Returns who does the work."""
        k, given = self.k, self.given
        size = min(k.cfg.tensor.rows, k.cfg.tensor.cols)
        values = given.context_shape[2]
        sinks = None if given.sinks is None else _sink_columns(k, given.sinks, size)
        engine = Attention(k, given.q.shape[2], given.sight, identity(k), values=values, sinks=sinks)
        self._stages = [k.sbuf(f"stage{i}", partitions=size, columns=values, dtype=dtype) for i in range(STAGES)]
        return engine

    def run(self, engine: Attention, finished: Callable[[int, Span, TileView], None], *, cut_last: bool = True) -> None:
        """engine: from `start`. finished(head, queries, tile): takes a tile [queries, values] away, which is written
        again STAGES tiles later. cut_last: see `Attention.run`. Errors: KernelError."""
        stored = 0

        def store(result: Result) -> None:
            nonlocal stored
            stage = self._stages[stored % STAGES][: result.queries.size, :]
            stored += 1
            engine.divide(stage, result)
            finished(result.head, result.queries, stage)

        operands = Operands(self.k, engine, self._q_t, self._k_t, self._v)
        engine.run(self.given.context_shape[0], operands.load, store, cut_last=cut_last)


def _sink_columns(k: Kernel, sinks: np.ndarray, size: int) -> TileView:
    """Sinks [heads, queries] as columns of SBUF, one for each tile of queries of a head."""
    heads, queries = sinks.shape
    tiles = -(-queries // size)
    padded = np.zeros((heads, tiles * size), np.float32)
    padded[:, :queries] = sinks
    bits = np.ascontiguousarray(encode(padded, "fp32").reshape(heads * tiles, size).T)
    tile = k.sbuf("sinks", partitions=size, columns=heads * tiles, dtype="fp32")
    k.dma(tile[:, :], k.hbm("sink_columns", bits.shape, "fp32", bits)[:, :])
    return tile[:, :]
