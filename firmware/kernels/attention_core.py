"""Flash-style attention of many heads: tiles of queries against blocks of keys, with running maximum and sum.

For each block: scores on the array, maximum and exponentials on the vector engine, the transpose of the
probabilities on the array, its way out of PSUM on the scalar engine, the product with the values on the array.
Blocks follow each other in a pipeline in which no engine waits for what another one does in the same step: behind the
exponentials of block b come the scores of b + 2, the transposes of b and the product of b - 1; the output of b - 3 is
rescaled between maximum and exponentials of b. The vector engine bounds; what it need not do (copies, the division by
the sum) is the scalar engine's. The first block is scored in pieces and the exponentials of the last one come in
pieces, so that the other engines start early and have little left at the end.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError, Tile, TileView
from firmware.kernels.attention_blocks import Block, blocks, key_block, turned_columns
from firmware.kernels.spans import Span, cut_spans, spans

__all__ = ["FIRST_TILES", "Attention", "Head"]

AHEAD = 2  # blocks that scores run ahead
PREPARED = 3  # blocks that operands are asked for ahead
BEHIND = 3  # blocks that the output lags behind the exponentials
RING = 4  # blocks whose columns of statistics are kept
SUMS = 4  # blocks whose products with the values have a place, if there is room
FIRST_TILES = (1, 2)  # tiles of keys behind which the first block is cut
LAST_PIECES = 4  # pieces of the last block's exponentials
MINUS_INFINITY = float("-inf")


@dataclass(frozen=True, slots=True)
class Head:
    """Operands of a head in SBUF: Q^T (scaled) of some queries and K^T as tiles of the head axis [dims, tokens], V as
    tiles of keys [keys, dims]. Q^T is asked for once a tile of queries, some blocks before it is used."""

    queries: Callable[[Span], Sequence[TileView]]
    k_t: Sequence[TileView]
    v: Sequence[TileView]


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

        def psum(name: str, columns: int, count: int = 2) -> list[Tile]:
            return [k.psum(f"{name}{i}", partitions=size, columns=columns, align=align) for i in range(count)]

        def sbuf(name: str, columns: int, dtype: str, count: int = 2) -> list[Tile]:
            return [k.sbuf(f"{name}{i}", partitions=size, columns=columns, dtype=dtype) for i in range(count)]

        # PSUM is taken whole: others may use it between two runs.
        self.scores = psum("scores", block)
        self.turned = psum("turned", turned_columns(cfg, block))
        self.sums = psum("sums", -(-dims * 4 // align) * align // 4)
        self.slots = [
            tile[:, at : at + dims]
            for at in range(0, self.sums[0].columns - dims + 1, dims + dims % 2)
            for tile in self.sums
        ][:SUMS]
        self.probabilities = sbuf("probabilities", self.block, "bf16")
        self.weights = sbuf("weights", across, "bf16")
        self.out = sbuf("context", dims, "fp32")
        self.columns = {
            name: sbuf(name, 1, "fp32", RING) for name in ("top", "maximum", "shrink", "before", "total", "inverse")
        }
        self.tops = sbuf("tops", len(FIRST_TILES) + 1, "fp32", 1)[0]
        self.identity = sbuf("identity", size, "bf16", 1)[0]
        self._source: HbmView | None = identity
        self._turns = 0
        if causal:
            self.masked = sbuf("masked", self.block, "fp32", 1)[0]
            self.rows = sbuf("row", 1, "fp32", 1)[0]
            numbers = np.arange(size, dtype=np.float32).view(np.uint32)[:, None]
            k.dma(self.rows[:, :], k.hbm("row_numbers", (size, 1), "fp32", numbers)[:, :])

    def heads_at_once(self, heads: int) -> tuple[int, int]:
        """Heads whose operands are in use at a time: at least, and so that loads do not wait for their places."""
        apart = -(-(PREPARED + 1) // len(self._blocks(1)))
        return min(heads, 1 + apart), min(heads, 2 + apart)

    def load_identity(self) -> None:
        """Bring the identity into SBUF, if it is not there."""
        if self._source is not None:
            self.k.dma(self.identity[:, :], self._source[:, :])
            self._source = None

    def run(
        self, heads: int, load: Callable[[int], Head], store: Callable[[int, Span, TileView, TileView], None]
    ) -> None:
        """load(head): the operands of a head; heads_at_once says how many are in use.
        store(head, queries, context [q, dims] FP32 without division, inverse [q, 1] FP32): takes a result; in PSUM if
        the keys are one block."""
        ordered = self._blocks(heads)
        ready: dict[int, Head] = {}
        queries: dict[int, Sequence[TileView]] = {}

        def prepare(b: Block) -> None:
            if b.head not in ready:
                ready[b.head] = load(b.head)
            if b.first:
                queries[b.tile] = ready[b.head].queries(b.q)

        def score(b: Block) -> None:
            self._score(b, queries[b.tile], ready[b.head])

        for b in ordered[:PREPARED]:
            prepare(b)
        self.load_identity()
        for b in ordered[:AHEAD]:
            score(b)
        for b in ordered:
            source = self._maximum(b)
            if b.number >= BEHIND:
                self._collect(ordered[b.number - BEHIND], store)
            self._exponentials(b, source, last=b is ordered[-1])
            if b.number + AHEAD < len(ordered):
                score(ordered[b.number + AHEAD])
            if b.number + PREPARED < len(ordered):
                prepare(ordered[b.number + PREPARED])
            before = ordered[b.number - 1] if b.number else None
            parts = self._tiles(before) if before else []
            # The last transposes come late, and part of the product is ready before them.
            early = len(parts) // 2 if b is ordered[-1] else 0
            if before:
                self._weigh(before, ready[before.head], parts[:early])
            self._turn(b, last=b is ordered[-1])
            if before:
                self._weigh(before, ready[before.head], parts[early:])
        for b in ordered[-BEHIND:]:
            if b is ordered[-2:][0]:  # as late as the places of its sums allow
                self._weigh(ordered[-1], ready[ordered[-1].head], self._tiles(ordered[-1]))
            self._collect(b, store)

    def _blocks(self, heads: int) -> list[Block]:
        return blocks(heads, self.tokens, self.size, self.block, causal=self.causal)

    def _column(self, name: str, b: Block, back: int = 0) -> TileView:
        return self.columns[name][(b.number - back) % RING][: b.q.size, :]

    def _tiles(self, b: Block) -> list[tuple[int, Span]]:
        """Tiles of the keys of a block: (number among the tiles of the head, place in the block)."""
        first = b.keys.start // self.size
        return [(first + i, span) for i, span in enumerate(spans(b.keys.size, self.size))]

    def _pieces(self, b: Block) -> list[Span]:
        """The first block in pieces, all others whole."""
        at = [] if b.number or b.masked else [n * self.size for n in FIRST_TILES]
        return cut_spans(b.keys.size, at)

    def _score(self, b: Block, queries: Sequence[TileView], head: Head) -> None:
        """Q K^T of a block, to PSUM."""
        target, most = self.scores[b.number % 2][: b.q.size, :], self.k.cfg.tensor.moving_max
        moving = [Span(p.start + s.start, s.size) for p in self._pieces(b) for s in spans(p.size, most)]
        for i, (q_t, k_t) in enumerate(zip(queries, head.k_t, strict=True)):
            self.k.tensor.load(q_t)
            for part in moving:
                keys = k_t[:, b.keys.start + part.start : b.keys.start + part.stop]
                self.k.tensor.matmul(keys, target[:, part.start : part.stop], accumulate=i > 0)

    def _maximum(self, b: Block) -> TileView:
        """Running maximum. Returns the scores, masked."""
        vector = self.k.vector
        source = self.scores[b.number % 2][: b.q.size, : b.keys.size]
        top = self._column("maximum" if b.first else "top", b)
        pieces = self._pieces(b)
        if b.masked:
            # Key i of the block is kept for the query in row r if i + keys.start <= r + q.start.
            kept = self.masked[: b.q.size, : b.keys.size]
            vector.range_select(
                kept, source, "le", self.rows[: b.q.size, :], "ge", MINUS_INFINITY,
                start=float(b.keys.start - b.q.start), reduce="reset_reduce", store=top,
            )  # fmt: skip
            source = kept
        elif len(pieces) > 1:
            tops = self.tops[: b.q.size, : len(pieces)]
            for i, part in enumerate(pieces):
                vector.reduce(tops[:, i : i + 1], source[:, part.start : part.stop], "max")
            vector.reduce(top, tops, "max")
        else:
            vector.reduce(top, source, "max")
        if not b.first:
            vector.tensor_tensor(self._column("maximum", b), self._column("maximum", b, 1), "max", top)
        return source

    def _exponentials(self, b: Block, source: TileView, *, last: bool) -> None:
        """Exponentials in BF16, running sum, and its inverse for the last block of a tile."""
        vector = self.k.vector
        target = self.probabilities[b.number % 2][: b.q.size, : b.keys.size]
        maximum, total = self._column("maximum", b), self._column("total", b)
        before = None
        if not b.first:
            shrink, before = self._column("shrink", b), self._column("before", b)
            vector.exp(shrink, self._column("maximum", b, 1), maximum)
            vector.tensor_tensor(before, self._column("total", b, 1), "multiply", shrink)
        tiles = -(-b.keys.size // self.size)
        parts = spans(b.keys.size, -(-tiles // LAST_PIECES) * self.size if last else b.keys.size)
        for i, part in enumerate(parts):
            how = "reduce" if i else "reset_reduce" if b.first else "load_reduce"
            place = slice(part.start, part.stop)
            vector.exp(
                target[:, place], source[:, place], maximum, reduce=how, init=None if i else before,
                store=total if i == len(parts) - 1 else None,
            )  # fmt: skip
        if b.last:
            vector.reciprocal(self._column("inverse", b), total)

    def _turn(self, b: Block, *, last: bool) -> None:
        """The probabilities transposed, tile by tile, and out of PSUM by the scalar engine. At the very end the vector
        engine has nothing else to do and takes every other tile."""
        source, weights = (x[b.number % 2] for x in (self.probabilities, self.weights))
        tiles = self._tiles(b)
        for i, (_, keys) in enumerate(tiles):
            place = slice(i * self.size, i * self.size + b.q.size)
            turned = self._place()[: keys.size, : b.q.size]
            self.k.tensor.load(source[: b.q.size, keys.start : keys.stop])
            self.k.tensor.matmul(self.identity[: b.q.size, : b.q.size], turned, part="transpose")
            engine = self.k.vector if last and i % 2 else self.k.scalar
            engine.copy(weights[: keys.size, place], turned)

    def _place(self) -> TileView:
        """The next place for a transpose, in another bank than the one before, where two engines read."""
        number, tile = divmod(self._turns, len(self.turned))
        self._turns += 1
        at = number % (self.turned[0].columns // self.size) * self.size
        return self.turned[tile][:, at : at + self.size]

    def _sums(self, b: Block) -> TileView:
        return self.slots[b.number % len(self.slots)][: b.q.size, :]

    def _weigh(self, b: Block, head: Head, tiles: Sequence[tuple[int, Span]]) -> None:
        """Probabilities times values of some tiles of keys, to PSUM."""
        weights, sums = self.weights[b.number % 2], self._sums(b)
        for number, keys in tiles:
            place = slice(keys.start, keys.start + b.q.size)
            self.k.tensor.load(weights[: keys.size, place])
            self.k.tensor.matmul(head.v[number][: keys.size, :], sums, accumulate=keys.start > 0)

    def _collect(self, b: Block, store: Callable[[int, Span, TileView, TileView], None]) -> None:
        """Add a block's part to the output of its tile; hand on a finished tile."""
        sums = self._sums(b)
        out = sums if b.first and b.last else self.out[b.tile % 2][: b.q.size, :]
        if b.first and not b.last:
            self.k.scalar.copy(out, sums)
        elif not b.first:
            self.k.vector.scalar_tensor_tensor(out, out, "multiply", self._column("shrink", b), "add", sums)
        if b.last:
            store(b.head, b.q, out, self._column("inverse", b))
