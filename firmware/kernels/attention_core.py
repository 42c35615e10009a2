"""Flash-style attention of many heads: tiles of queries against blocks of keys, with running maximum and sum.

For each block: scores on the array, maximum and exponentials on the vector engine, the transpose of the
probabilities on the array, its way out of PSUM on the scalar engine, the product with the values on the array.
Blocks follow each other in a pipeline, so that the three engines work at the same time: scores run two blocks ahead,
and the output of a block is rescaled after the exponentials of the next but one. The vector engine bounds; what it
need not do (copies, the division by the sum) is the scalar engine's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError, Tile, TileView
from firmware.kernels.spans import Span, spans
from rtl.contract.config import Config

__all__ = ["Attention", "Head", "identity_bits", "key_block"]

AHEAD = 2  # blocks that scores run ahead
BEHIND = 2  # blocks that the output lags behind the exponentials
RING = 4  # blocks whose columns of statistics are kept
MINUS_INFINITY = float("-inf")


@dataclass(frozen=True, slots=True)
class Head:
    """Operands of a head in SBUF: Q^T (scaled) and K^T as tiles of the head axis [dims, tokens], V as tiles of keys
    [keys, dims]."""

    q_t: Sequence[TileView]
    k_t: Sequence[TileView]
    v: Sequence[TileView]


@dataclass(frozen=True, slots=True)
class _Block:
    """A tile of queries of a head against a block of keys; `number` counts all blocks, `tile` all tiles."""

    number: int
    tile: int
    head: int
    q: Span
    keys: Span
    first: bool
    last: bool
    masked: bool  # some query does not see all of these keys


def identity_bits(size: int) -> list[list[int]]:
    """BF16 bits of the identity."""
    return [[0x3F80 if r == c else 0 for c in range(size)] for r in range(size)]


def _room(cfg: Config, keys: int, dims: int, align: int) -> int:
    """Bytes of a PSUM partition that two of each of scores and transposes take, and the outputs on their way."""
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    across = -(-keys // size) * size
    return sum(count * (-(-n * 4 // align) * align) for count, n in ((2, keys), (2, across), (BEHIND + 1, dims)))


def key_block(cfg: Config, dims: int) -> tuple[int, int]:
    """Keys of a block, and the alignment of everything in PSUM: the largest block that fits, in banks of its own
    if possible. KernelError if none fits."""
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    for align in (cfg.psum.bank_bytes, 4):
        keys = cfg.tensor.moving_max
        while keys >= size:
            if _room(cfg, keys, dims, align) <= cfg.psum.partition_bytes:
                return keys, align
            keys //= 2
    raise KernelError(
        f"a head of {dims} needs {_room(cfg, size, dims, 4)} bytes of each PSUM partition, more than there are "
        f"({cfg.psum.partition_bytes})"
    )


class Attention:
    """Memory and instructions of attention over heads of one size. `run` emits everything.

    causal: a query sees the keys up to its own place.
    """

    def __init__(self, k: Kernel, dims: int, tokens: int, identity: HbmView, *, causal: bool = False):
        """identity: BF16 [size, size] in HBM."""
        cfg = k.cfg
        self.k = k
        self.dims = dims
        self.tokens = tokens
        self.causal = causal
        self.size = size = min(cfg.tensor.rows, cfg.tensor.cols)
        if dims > cfg.tensor.moving_max:
            raise KernelError(f"head must be at most tensor.moving_max ({cfg.tensor.moving_max}), not {dims}")
        block, align = key_block(cfg, dims)
        self.block = min(block, -(-tokens // size) * size)
        across = -(-self.block // size) * size
        most = -(-block // size) * size  # PSUM is taken whole: others may use it between two runs

        def psum(name: str, columns: int, count: int = 2) -> list[Tile]:
            return [k.psum(f"{name}{i}", partitions=size, columns=columns, align=align) for i in range(count)]

        def sbuf(name: str, columns: int, dtype: str, count: int = 2) -> list[Tile]:
            return [k.sbuf(f"{name}{i}", partitions=size, columns=columns, dtype=dtype) for i in range(count)]

        self.scores = psum("scores", block)
        self.turned = psum("turned", most)
        self.sums = psum("sums", -(-dims * 4 // align) * align // 4, BEHIND + 1)
        self.probabilities = sbuf("probabilities", self.block, "bf16")
        self.weights = sbuf("weights", across, "bf16")
        self.out = sbuf("context", dims, "fp32")
        self.columns = {
            name: sbuf(name, 1, "fp32", RING) for name in ("top", "maximum", "shrink", "before", "total", "inverse")
        }
        self.identity = sbuf("identity", size, "bf16", 1)[0]
        k.dma(self.identity[:, :], identity[:, :])
        if causal:
            self.masked = sbuf("masked", self.block, "fp32", 1)[0]
            self.rows = sbuf("row", 1, "fp32", 1)[0]
            numbers = np.arange(size, dtype=np.float32).view(np.uint32)[:, None]
            k.dma(self.rows[:, :], k.hbm("row_numbers", (size, 1), "fp32", numbers)[:, :])

    def blocks(self, heads: int) -> list[_Block]:
        """All blocks in order: keys of a tile, tiles of a head, heads."""
        found: list[_Block] = []
        tile = 0
        for head in range(heads):
            for q in spans(self.tokens, self.size):
                # Blocks that lie above the diagonal as a whole are left out.
                keys = spans(min(self.tokens, q.stop) if self.causal else self.tokens, self.block)
                for i, span in enumerate(keys):
                    masked = self.causal and span.stop - 1 > q.start
                    found.append(_Block(len(found), tile, head, q, span, i == 0, i == len(keys) - 1, masked))
                tile += 1
        return found

    def run(
        self, heads: int, load: Callable[[int], Head], store: Callable[[int, Span, TileView, TileView], None]
    ) -> None:
        """load(head): the operands of a head. Three heads may be in use at once: that of the block whose values are
        multiplied, and those of the two blocks ahead.
        store(head, queries, context [q, dims] FP32 without division, inverse [q, 1] FP32): takes a result; in PSUM if
        the keys are one block."""
        blocks = self.blocks(heads)
        ready: dict[int, Head] = {}

        def head(number: int) -> Head:
            if number not in ready:
                ready[number] = load(number)
            return ready[number]

        for b in blocks[:AHEAD]:
            self._score(b, head(b.head))
        for b in blocks:
            self._softmax(b)
            self._turn(b)
            if b.number + AHEAD < len(blocks):
                ahead = blocks[b.number + AHEAD]
                self._score(ahead, head(ahead.head))
            self._weigh(b, head(b.head))
            if b.number >= BEHIND:
                self._collect(blocks[b.number - BEHIND], store)
        for b in blocks[-BEHIND:]:
            self._collect(b, store)

    def _column(self, name: str, b: _Block, back: int = 0) -> TileView:
        return self.columns[name][(b.number - back) % RING][: b.q.size, :]

    def _tiles(self, b: _Block) -> list[tuple[int, Span]]:
        """Tiles of the keys of a block: (number among the tiles of the head, place in the block)."""
        first = b.keys.start // self.size
        return [(first + i, span) for i, span in enumerate(spans(b.keys.size, self.size))]

    def _score(self, b: _Block, head: Head) -> None:
        """Q K^T of a block, to PSUM."""
        target = self.scores[b.number % 2][: b.q.size, : b.keys.size]
        for i, (q_t, k_t) in enumerate(zip(head.q_t, head.k_t, strict=True)):
            self.k.tensor.load(q_t[:, b.q.start : b.q.stop])
            self.k.tensor.matmul(k_t[:, b.keys.start : b.keys.stop], target, accumulate=i > 0)

    def _softmax(self, b: _Block) -> None:
        """Running maximum, exponentials in BF16, running sum."""
        vector = self.k.vector
        source = self.scores[b.number % 2][: b.q.size, : b.keys.size]
        top = self._column("maximum" if b.first else "top", b)
        if b.masked:
            # Key i of the block is kept for the query in row r if i + keys.start <= r + q.start.
            kept = self.masked[: b.q.size, : b.keys.size]
            vector.range_select(
                kept, source, "le", self.rows[: b.q.size, :], "ge", MINUS_INFINITY,
                start=float(b.keys.start - b.q.start), reduce="reset_reduce", store=top,
            )  # fmt: skip
            source = kept
        else:
            vector.reduce(top, source, "max")
        target = self.probabilities[b.number % 2][: b.q.size, : b.keys.size]
        maximum, total = self._column("maximum", b), self._column("total", b)
        if b.first:
            vector.exp(target, source, maximum, reduce="reset_reduce", store=total)
            return
        earlier, shrink, before = self._column("maximum", b, 1), self._column("shrink", b), self._column("before", b)
        vector.tensor_tensor(maximum, earlier, "max", top)
        vector.exp(shrink, earlier, maximum)
        vector.tensor_tensor(before, self._column("total", b, 1), "multiply", shrink)
        vector.exp(target, source, maximum, reduce="load_reduce", init=before, store=total)

    def _turn(self, b: _Block) -> None:
        """The probabilities transposed, tile by tile, and out of PSUM by the scalar engine."""
        source, turned, weights = (x[b.number % 2] for x in (self.probabilities, self.turned, self.weights))
        for i, (_, keys) in enumerate(self._tiles(b)):
            place = slice(i * self.size, i * self.size + b.q.size)
            self.k.tensor.load(source[: b.q.size, keys.start : keys.stop])
            self.k.tensor.matmul(self.identity[: b.q.size, : b.q.size], turned[: keys.size, place])
            self.k.scalar.copy(weights[: keys.size, place], turned[: keys.size, place])

    def _weigh(self, b: _Block, head: Head) -> None:
        """Probabilities times values, to PSUM."""
        weights, sums = self.weights[b.number % 2], self.sums[b.number % len(self.sums)]
        for i, (number, keys) in enumerate(self._tiles(b)):
            place = slice(i * self.size, i * self.size + b.q.size)
            self.k.tensor.load(weights[: keys.size, place])
            self.k.tensor.matmul(head.v[number][: keys.size, :], sums[: b.q.size, : self.dims], accumulate=i > 0)

    def _collect(self, b: _Block, store: Callable[[int, Span, TileView, TileView], None]) -> None:
        """Add a block's part to the output of its tile; hand on a finished tile."""
        vector = self.k.vector
        sums = self.sums[b.number % len(self.sums)][: b.q.size, : self.dims]
        out = sums if b.first and b.last else self.out[b.tile % 2][: b.q.size, :]
        if b.first and not b.last:
            self.k.scalar.copy(out, sums)
        elif not b.first:
            vector.scalar_tensor_tensor(out, out, "multiply", self._column("shrink", b), "add", sums)
        if b.last:
            inverse = self._column("inverse", b)
            vector.reciprocal(inverse, self._column("total", b))
            store(b.head, b.q, out, inverse)
