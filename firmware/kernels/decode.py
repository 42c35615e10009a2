"""Workload `decode`: attention of one token over a cache of keys and values of which a run knows how much is live.

The cache has room for `past` tokens, K^T [key heads, head, past] and V [key heads, past, values] in BF16. The number of
live tokens is an int32 in HBM: the queues read it and turn as often as there are blocks with live tokens. The last one
is copied whole, and scores of what is not live are set to the least number before the softmax, so that nothing beyond
the live tokens counts, if only it is finite. If the kernel knows their number its loops are of known length, else it is
the same.

The queries of the heads that share keys are the rows of one product. Two loops: scores of all blocks, scaled by the
scalar engine, and their largest; then exponentials, their sum and the product with V, which adds up in PSUM.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from firmware.decisions.numbers import Number
from firmware.kernel import HbmView, Kernel, KernelError, TileView
from firmware.kernels.attention_blocks import Sight
from firmware.kernels.attention_reference import attention_macs, attention_reference
from firmware.kernels.gemm import product_metrics
from firmware.numbers import decode as decoded
from firmware.numbers import encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["decode"]

SLOTS = 2  # key heads whose operands are in SBUF at once
BEYOND = 1e30  # what the cache holds behind its live tokens: it must not matter


@dataclass(frozen=True, slots=True)
class _Sizes:
    """`piece`: tokens that are turned by the array at once, on as many partitions; `block`: tokens of a turn."""

    group: int
    head: int
    values: int
    rows: int
    piece: int
    block: int
    blocks: int

    @property
    def room(self) -> int:
        """Tokens of whole blocks."""
        return self.blocks * self.block

    @property
    def chunks(self) -> list[slice]:
        """Dimensions of a head that the array takes at once."""
        return [slice(n, min(n + self.rows, self.head)) for n in range(0, self.head, self.rows)]


def _sizes(cfg: Config, group: int, head: int, values: int, past: int, block: int | None) -> _Sizes:
    rows = min(cfg.partitions, cfg.tensor.rows)
    piece = min(rows, cfg.tensor.cols)
    most = min(4 * piece, cfg.tensor.moving_max)
    block = most if block is None else block
    if block % piece or block & (block - 1) or block > most:
        raise KernelError(f"block must be a power of two from {piece} to {most}, not {block}")
    if group > piece:
        raise KernelError(f"{group} heads share keys; {cfg.name} takes {piece} at once")
    if values > cfg.tensor.moving_max:
        raise KernelError(f"values must be at most tensor.moving_max ({cfg.tensor.moving_max}), not {values}")
    return _Sizes(group, head, values, rows, piece, block, -(-past // block))


class _Decode:
    """Of one kernel with `heads` of keys: `live` is a register or an int, `last` the column of SBUF that holds it as
    FP32, or a constant."""

    def __init__(self, k: Kernel, sizes: _Sizes, live: Number | int, last: TileView | float, heads: int):
        self.k, self.sizes, self.live, self.last = k, sizes, live, last
        self.slots = slots = min(SLOTS, heads)
        self.turns = -(-live // sizes.block)
        s, g = sizes, sizes.group
        self.keys = [
            [k.sbuf(f"keys {n} {c.start}", partitions=c.stop - c.start, columns=s.room, dtype="bf16") for c in s.chunks]
            for n in range(slots)
        ]
        columns = s.room // s.piece * s.values
        self.values = [k.sbuf(f"values {n}", partitions=s.piece, columns=columns, dtype="bf16") for n in range(slots)]
        self.queries = [
            [k.sbuf(f"queries {n} {c.start}", partitions=c.stop - c.start, columns=g, dtype="bf16") for c in s.chunks]
            for n in range(slots)
        ]
        self.scores = k.sbuf("scores", partitions=g, columns=s.room, dtype="fp32")
        self.weights = k.sbuf("weights", partitions=g, columns=s.room, dtype="bf16")
        self.turned = [k.sbuf(f"turned {n}", partitions=s.piece, columns=g, dtype="bf16") for n in range(2)]
        self.peak, self.total = (
            k.sbuf(name, partitions=g, columns=1, dtype="fp32")[:, :] for name in ("peak", "total")
        )
        self.out = [k.sbuf(f"out {n}", partitions=g, columns=s.values, dtype="fp32") for n in range(slots)]
        self.sums = [k.psum(f"sums {n}", partitions=g, columns=s.block) for n in range(2)]
        self.pieces = [k.psum(f"pieces {n}", partitions=s.piece, columns=g) for n in range(2)]
        self.result = k.psum("result", partitions=g, columns=s.values)

    def head(self, number: int, q: HbmView, keys: HbmView, values: HbmView, context: HbmView) -> None:
        """One head of keys: q [group, head], keys [head, room], values [room, values], context [group, values]."""
        k, s, slot = self.k, self.sizes, number % self.slots
        for chunk, tile in zip(s.chunks, self.queries[slot], strict=True):
            k.dma(tile[:, :], q[:, chunk].permute((1, 0)))
        k.vector.memset(self.out[slot][:, :], 0.0)
        with k.loop(self.turns) as i:
            self._score(slot, i, keys)
        with k.loop(self.turns) as i:
            self._weigh(slot, i, values)
        with k.if_(self.live > 0):
            k.vector.reciprocal(self.total, self.total)
            k.vector.tensor_scalar(self.out[slot][:, :], self.result[:, :], "multiply", self.total)
        k.dma(context, self.out[slot][:, :])

    def _score(self, slot: int, i: int, keys: HbmView) -> None:
        k, s = self.k, self.sizes
        first, last = i * s.block, (i + 1) * s.block
        sums = k.pick(self.sums, i % 2)
        for n, (chunk, tile) in enumerate(zip(s.chunks, self.keys[slot], strict=True)):
            k.dma(tile[:, first:last], keys[chunk, first:last])
            k.tensor.load(self.queries[slot][n][:, :])
            k.tensor.matmul(tile[:, first:last], sums[:, :], accumulate=n > 0)
        how = k.pick(("reduce", "reset_reduce"), i == 0)
        scores = self.scores[:, first:last]
        k.scalar.activation(scores, sums[:, :], "copy", scale=1.0 / float(np.sqrt(s.head)))
        k.vector.range_select(scores, scores, "ge", 0.0, "lt", self.last, start=first, reduce=how, store=self.peak)

    def _weigh(self, slot: int, i: int, values: HbmView) -> None:
        k, s = self.k, self.sizes
        first, last, each = i * s.block, (i + 1) * s.block, s.block // s.piece
        here = self.values[slot][:, first // s.piece * s.values : last // s.piece * s.values]
        k.dma(here.split(0, s.values), values[first:last, :].split(0, s.piece).permute((1, 0, 2)))
        weights = self.weights[:, first:last]
        how = k.pick(("reduce", "reset_reduce"), i == 0)
        k.vector.exp(weights, self.scores[:, first:last], self.peak, reduce=how, store=self.total)
        for n in range(each):
            pieces, turned = self.pieces[n % 2], self.turned[n % 2]
            k.tensor.transpose(weights[:, n * s.piece : (n + 1) * s.piece], pieces[:, :])
            k.vector.copy(turned[:, :], pieces[:, :])
            k.tensor.load(turned[:, :])
            begins = True if n else i > 0
            k.tensor.matmul(here[:, n * s.values : (n + 1) * s.values], self.result[:, :], accumulate=begins)


def _cache(cfg: Config, live: int, room: int, cache: np.ndarray) -> np.ndarray:
    """BF16 bits of [key heads, tokens, ...] with room for more, behind the live ones what must not matter."""
    whole = np.full((cache.shape[0], room, cache.shape[2]), BEYOND, np.float32)
    whole[:, :live] = cache[:, :live]
    return encode(whole, "bf16")


def decode(
    cfg: Config, q: np.ndarray, keys: np.ndarray, values: np.ndarray, *, past: int, dynamic: bool, block: int | None
) -> Program:
    """A program for float32 q [heads, head], keys [key heads, live, head] and values [key heads, live, values] in BF16,
    in a cache of `past` tokens; without `dynamic` the number of live ones is known to the kernel.

    Output: `context` [key heads, heads of a group, values] FP32. Errors: KernelError.
    """
    heads, shared, live = len(q), len(keys), keys.shape[1]
    if heads % shared:
        raise KernelError(f"{heads} heads are no multiple of the {shared} heads of keys that they share")
    if not 0 <= live <= past:
        raise KernelError(f"{live} tokens are live, and the cache has room for {past}")
    s = _sizes(cfg, heads // shared, q.shape[1], values.shape[2], past, block)
    k = Kernel(cfg, "decode")
    bits = encode(q, "bf16").reshape(shared, s.group, s.head)
    given = k.hbm("q", bits.shape, "bf16", bits)
    turned = np.ascontiguousarray(_cache(cfg, live, s.room, keys).swapaxes(1, 2))
    cache = k.hbm("keys", turned.shape, "bf16", turned)
    stored = _cache(cfg, live, s.room, values)
    cached = k.hbm("values", stored.shape, "bf16", stored)
    context = k.hbm("context", (shared, s.group, s.values), "fp32")
    count: Number | int = live
    last: TileView | float = float(live)
    if dynamic:
        number = k.hbm("live", (1,), "int32", np.array([live], np.uint32))
        whole = k.sbuf("live tokens", partitions=s.group, columns=1, dtype="int32")
        column = k.sbuf("live column", partitions=s.group, columns=1, dtype="fp32")
        k.dma(whole[:, :], number.repeat(s.group))
        k.vector.copy(column[:, :], whole[:, :])
        count, last = k.register(number, past), column[:, :]
    work = _Decode(k, s, count, last, shared)
    for n in range(shared):
        work.head(n, given[n, :, :], cache[n, :, :], cached[n, :, :], context[n, :, :])

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The context against float64 attention of the rounded operands."""
        arrays = (q.reshape(shared, s.group, -1), keys, values)
        rq, rk, rv = (decoded(encode(x, "bf16"), "bf16") for x in arrays)
        found = decoded(outputs["context"], "fp32")
        exact = attention_reference(rq, rk, rv, Sight(s.group, live), None) if live else np.zeros(found.shape)
        return product_metrics(found, exact)

    notes = [
        f"the host casts to BF16 and stores K transposed, [{shared}, {s.head}, {s.room}]",
        f"blocks of {s.block} tokens, {s.blocks} at most" if dynamic else f"blocks of {s.block} tokens",
    ]
    macs = attention_macs(Sight(s.group, live), s.head, shared, s.values) if live else 0
    return k.program(macs=macs, notes=notes, metrics=metrics)
