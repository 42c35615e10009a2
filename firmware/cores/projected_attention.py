"""Workload `split_attention` with an output projection: y = (results of all heads side by side) Wo, on core 0.

The other cores turn each tile of results, in BF16, and send it to where the array of core 0 reads it as an operand.
Each place is written once, so nobody asks for places, and core 0 does nothing but wait, once a core, before it
multiplies what came from there; its own heads come first.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from firmware.cores.ensemble import Ensemble, Mark, numbered
from firmware.cores.head_shares import head_shares
from firmware.kernel import Kernel
from firmware.kernels.attention_core import Attention
from firmware.kernels.attention_heads import STAGES, AttentionHeads
from firmware.kernels.attention_inputs import AttentionInputs
from firmware.kernels.gemm import product_metrics
from firmware.kernels.linear import Linear
from firmware.kernels.spans import Span, spans
from firmware.numbers import decode, encode
from firmware.program import Semaphore
from firmware.views import HbmView, KernelError, Tile, TileView
from rtl.contract.config import Config
from rtl.contract.isa import Queue

__all__ = ["projected_attention"]

CLASS = 1  # of all that goes to other cores: copies of a core's own do not wait behind what waits for a wire
SLOTS = 4  # chunks of Wo in SBUF at a time


class _Turned:
    """Results of a core's heads as operands: tiles [values, queries] of the array's size, a head behind the other.

    `leave` takes each piece when it is there. A tile is turned a tile later: the array does not wait for its division.
    """

    def __init__(self, k: Kernel, engine: Attention, tiles: list[Tile], leave: Callable[[int, TileView], None]):
        self.k, self.engine, self.tiles, self.leave = k, engine, tiles, leave
        self._waiting: list[tuple[int, Span, TileView]] = []

    def take(self, head: int, queries: Span, tile: TileView) -> None:
        """The next finished tile."""
        self.rest()
        self._waiting.append((head, queries, tile))

    def rest(self) -> None:
        """What has been taken and not been turned."""
        for head, queries, tile in self._waiting:
            cuts = spans(tile.elements, self.engine.size)
            for i, cut in enumerate(cuts):
                number = head * len(cuts) + i
                piece = self.tiles[number][:, queries.start : queries.stop]
                self.engine.transpose(piece, tile[:, cut.start : cut.stop])
                self.leave(number, piece)
        self._waiting = []


def _project(k: Kernel, engine: Attention, x: Callable[[int], Tile], weights: HbmView, y: HbmView) -> None:
    """y = x Wo, where x(i) is K tile i of x^T. PSUM is that of attention, which is over."""
    width = engine.turned[0].columns
    sums = [
        tile[:, at : at + width]
        for tile in (*engine.scores, *engine.turned, *engine.sums)
        for at in range(0, tile.columns - width + 1, width)
    ]
    linear = Linear(k, sums, SLOTS)
    results = [
        k.sbuf(f"result{i}", partitions=engine.size, columns=min(width, y.shape[1]), dtype="fp32")
        for i in range(STAGES)
    ]
    stored = 0

    def store(tokens: Span, columns: Span, part: TileView) -> None:
        nonlocal stored
        result = results[stored % STAGES][: tokens.size, : columns.size]
        stored += 1
        k.scalar.copy(result, part)
        k.dma(y[tokens.start : tokens.stop, columns.start : columns.stop], result)

    linear.by_tokens(weights, lambda i, part: x(i)[:, part.start : part.stop], y.shape[0], store)


def projected_attention(
    cfg: Config,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    weights: np.ndarray,
    *,
    cores: int = 2,
    causal: bool = False,
) -> Ensemble:
    """Programs for float32 q [heads, queries, head], k [key heads, keys, head], v [key heads, keys, values] and weights
    [heads * values, width] in BF16, split by heads; core n is core n of chip 0.

    Output: `y` [queries, width] FP32 of core 0. Marks: `own`, when core 0 has turned each piece of its own; `arrived`,
    when its array has noticed all of another core. Errors: KernelError.
    """
    whole = AttentionInputs.of(q, k, v, causal=causal)
    shares = head_shares(q.shape[0], k.shape[0], q.shape[1], cores)
    parts = [AttentionInputs.of(q[own], k[shared], v[shared], causal=causal) for own, shared in shares]
    heads, queries, values = parts[0].context_shape
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    if parts[0].stacked:
        raise KernelError(f"with an output projection heads that share keys have at least 2 queries, not {q.shape[1]}")
    if values % size:
        raise KernelError(f"with an output projection values have a multiple of {size} dimensions, not {values}")
    if weights.shape[0] != q.shape[0] * values:
        raise KernelError(f"an output projection of {q.shape[0]} heads of {values} has not {weights.shape[0]} rows")
    kernels = [Kernel(cfg, f"heads{n}", numbered(cfg, n)) for n in range(cores)]
    first = kernels[0]
    work = [AttentionHeads(kernel, part) for kernel, part in zip(kernels, parts, strict=True)]
    bits = encode(weights, "bf16")
    wo, y = first.hbm("wo", weights.shape, "bf16", bits), first.hbm("y", (queries, weights.shape[1]), "fp32")
    each = heads * values // size
    x_t = [first.sbuf(f"x_t{i}", partitions=size, columns=queries, dtype="bf16") for i in range(cores * each)]
    arrived = {n: first.semaphore(f"arrived{n}") for n in range(1, cores)}
    own: list[Mark] = []
    came: list[Mark] = []

    def ends(number: int, piece: TileView) -> None:
        own.append(Mark(first.core, Queue.SCALAR, first.items(Queue.SCALAR) - 1))

    engine = work[0].start("bf16")
    turned = _Turned(first, engine, x_t, ends)
    work[0].run(engine, turned.take, cut_last=cores == 1)
    turned.rest()
    pieces = each * -(-queries // size)

    def operand(number: int) -> Tile:
        n = number // each
        if n in arrived:
            views = [tile[:, :] for tile in x_t[n * each : (n + 1) * each]]
            first.wait(Queue.TENSOR, arrived.pop(n), pieces, *views)
            came.append(Mark(first.core, Queue.TENSOR, first.items(Queue.TENSOR) - 1))
        return x_t[number]

    signals = dict(arrived)
    _project(first, engine, operand, wo, y)
    for n in range(1, cores):
        _send(kernels[n], work[n], x_t[n * each : (n + 1) * each], signals[n], last=n == cores - 1)

    def metrics(outputs: Mapping[tuple[int, str], np.ndarray]) -> dict[str, Any]:
        """The result against float64 of the rounded operands: results of heads are rounded to BF16 in between."""
        context = whole.exact().swapaxes(0, 1).reshape(queries, -1)
        return product_metrics(decode(outputs[first.core, "y"], "fp32"), context @ decode(bits, "bf16").astype(float))

    macs = [part.macs for part in parts]
    macs[0] += queries * weights.size
    return Ensemble(
        programs=tuple(kernel.program(macs=n) for kernel, n in zip(kernels, macs, strict=True)),
        truth={},
        marks={"own": tuple(own), "arrived": tuple(came)},
        metrics=metrics,
    )


def _send(k: Kernel, work: AttentionHeads, places: list[Tile], signal: Semaphore, *, last: bool) -> None:
    """Attention of another core, whose results go to these places of core 0."""
    tiles = [
        k.sbuf(f"x_t{i}", partitions=place.partitions, columns=place.columns, dtype="bf16")
        for i, place in enumerate(places)
    ]
    engine = work.start("bf16")

    def send(number: int, piece: TileView) -> None:
        start = (piece.offset - tiles[number].offset) // 2
        k.dma(places[number][:, start : start + piece.elements], piece, class_=CLASS, signal=signal)

    turned = _Turned(k, engine, tiles, send)
    work.run(engine, turned.take, cut_last=last)
    turned.rest()
