"""Flash-style attention of many heads: tiles of queries against blocks of keys, with running maximum and sum.

For each block: scores on the array; the scalar engine divides them by sqrt(dims) in FP32 on their way out of PSUM and
takes their maximum; exponentials on the vector engine, the transpose of the probabilities on the array, its way out of
PSUM on the vector engine, the product with the values on the array.
Blocks follow each other in a pipeline in which no engine waits for what another one does in the same step: beside the
exponentials of block b the scalar engine scales b + 1, and the array makes the transposes of b - 1, the scores of b + 2
and the product of b - 2; the output of b - 3 is rescaled behind the exponentials. The first block is scored and scaled
in pieces and the exponentials of the last one come in pieces, so that the other engines start early and have little
left at the end.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from firmware.kernel import ALLOCATION_BYTES, HbmView, Kernel, KernelError, Tile, TileView
from firmware.kernels.attention_blocks import Block, Sight, blocks, key_block, turned_columns
from firmware.kernels.attention_hidden import Hidden
from firmware.kernels.spans import Span, cut_spans, spans

__all__ = ["FIRST_TILES", "Attention", "Head", "Result"]

AHEAD = 2  # blocks that scores run ahead
PREPARED = 3  # blocks that operands are asked for ahead
WEIGHED = 2  # blocks that products with the values lag behind the exponentials
BEHIND = 3  # blocks that the output lags behind the exponentials
RING = 4  # blocks whose columns of statistics are kept
SUMS = 4  # blocks whose products with the values have a place, if there is room
FIRST_TILES = (1, 2)  # tiles of keys behind which the first block is cut
LAST_PIECES = 4  # pieces of the last block's exponentials
SPARE_BYTES = 1024  # of an SBUF partition that scaled scores leave to others


@dataclass(frozen=True, slots=True)
class Head:
    """Operands of a head in SBUF: Q^T and K^T as tiles of the head axis [dims, tokens], V as tiles of keys
    [keys, dims]."""

    q_t: Sequence[TileView]
    k_t: Sequence[TileView]
    v: Sequence[TileView]


@dataclass(frozen=True, slots=True)
class Result:
    """A tile of finished queries: `context` [q, dims] is FP32, in PSUM if the keys are one block, and still to be
    multiplied by `inverse` [q, 1]. `last`: nothing comes behind it."""

    head: int
    queries: Span
    context: TileView
    inverse: TileView
    last: bool


class Attention:
    """Memory and instructions of attention over heads of one size. `run` emits everything."""

    def __init__(
        self,
        k: Kernel,
        dims: int,
        sight: Sight,
        identity: HbmView,
        *,
        values: int | None = None,
        sinks: TileView | None = None,
    ):
        """dims, values: elements of a query or key, and of a value if not as many. identity: BF16 [size, size] in HBM.

        sinks: a logit of each query that stands beside its scores and has no value: FP32 columns of SBUF, a tile of
        queries of a head each.
        """
        cfg = k.cfg
        self.k = k
        self.dims = dims
        self.sight = sight
        self.sinks = sinks
        self.scale = 1 / math.sqrt(dims)
        values = dims if values is None else values
        self.size = size = min(cfg.tensor.rows, cfg.tensor.cols)
        if values > cfg.tensor.moving_max:
            raise KernelError(f"head must be at most tensor.moving_max ({cfg.tensor.moving_max}), not {values}")
        block, align = key_block(cfg, values)
        self.block = min(block, -(-sight.keys // size) * size)
        across = -(-self.block // size) * size

        def psum(name: str, columns: int, count: int = 2) -> list[Tile]:
            return [k.psum(f"{name}{i}", partitions=size, columns=columns, align=align) for i in range(count)]

        def sbuf(name: str, columns: int, dtype: str, count: int = 2) -> list[Tile]:
            return [k.sbuf(f"{name}{i}", partitions=size, columns=columns, dtype=dtype) for i in range(count)]

        # PSUM is taken whole: others may use it between two runs.
        self.scores = psum("scores", block)
        self.turned = psum("turned", turned_columns(cfg, block))
        self.sums = psum("sums", -(-values * 4 // align) * align // 4)
        self.slots = [
            tile[:, at : at + values]
            for at in range(0, self.sums[0].columns - values + 1, values + values % 2)
            for tile in self.sums
        ][:SUMS]
        self.probabilities = sbuf("probabilities", self.block, "bf16")
        self.weights = sbuf("weights", across, "bf16")
        self.out = sbuf("context", values, "fp32")
        self.columns = {
            name: sbuf(name, 1, "fp32", RING) for name in ("top", "maximum", "shrink", "before", "total", "inverse")
        }
        self.identity = sbuf("identity", size, "bf16", 1)[0]
        self._scaled: list[Tile] = []
        self._source: HbmView | None = identity
        self._turns = 0
        self.hidden = Hidden(k, size, sight)

    def heads_at_once(self, heads: int) -> tuple[int, int]:
        """Heads whose operands are in use at a time: at least, and so that loads do not wait for their places."""
        apart = -(-(PREPARED + WEIGHED) // len(self._blocks(1)))
        return min(heads, 1 + apart), min(heads, 2 + apart)

    def load_identity(self) -> None:
        """Bring the identity into SBUF, if it is not there."""
        if self._source is not None:
            self.k.dma(self.identity[:, :], self._source[:, :])
            self._source = None

    @property
    def scaled_bytes(self) -> int:
        """Bytes of an SBUF partition that `run` takes for scaled scores if they are free; else these stay in PSUM, and
        the array waits more often."""
        return 2 * -(-self.block * 4 // ALLOCATION_BYTES) * ALLOCATION_BYTES + SPARE_BYTES

    def divide(self, target: TileView, result: Result) -> None:
        """target = a finished result. The last one is waited for, and the vector engine is faster."""
        if result.last:
            self.k.vector.tensor_scalar(target, result.context, "multiply", result.inverse)
        else:
            self.k.scalar.activation(target, result.context, "copy", scale=result.inverse)

    def run(
        self, heads: int, load: Callable[[int], Head], store: Callable[[Result], None], *, cut_last: bool = True
    ) -> None:
        """load(head): the operands of a head; heads_at_once says how many are in use. store: takes a result. cut_last:
        the exponentials of the last block come in pieces; its sums are then rounded in another order than of others.
        """
        if not self._scaled and self.k.sbuf_free() >= self.scaled_bytes:
            self._scaled = [
                self.k.sbuf(f"scaled{i}", partitions=self.size, columns=self.block, dtype="fp32") for i in range(2)
            ]
        ordered = self._blocks(heads)
        ready: dict[int, Head] = {}

        def at(number: int) -> list[Block]:
            """The block of that number, if there is one."""
            return ordered[number : number + 1] if number >= 0 else []

        def prepare(b: Block) -> None:
            if b.head not in ready:
                ready[b.head] = load(b.head)

        for b in ordered[:PREPARED]:
            prepare(b)
        self.load_identity()
        for b in ordered[:AHEAD]:
            self._score(b, ready[b.head])
        self._scale(ordered[0])
        count = len(ordered)
        for number in range(count + BEHIND):
            for b in at(number):
                self._exponentials(b, cut=cut_last and number == count - 1)
            for b in at(number - BEHIND):
                self._collect(b, store, last=b.number == count - 1)
            for b in at(number + 1):
                self._scale(b)
            for b in at(number - 1):
                self._turn(b, late=number >= count - 1)
            for b in at(number + AHEAD):
                self._score(b, ready[b.head])
            for b in at(number - WEIGHED):
                self._weigh(b, ready[b.head])
            for b in at(number + PREPARED):
                prepare(b)

    def _blocks(self, heads: int) -> list[Block]:
        return blocks(heads, self.sight, self.size, self.block)

    def _column(self, name: str, b: Block, back: int = 0) -> TileView:
        return self.columns[name][(b.number - back) % RING][: b.q.size, :]

    def _tiles(self, b: Block) -> list[tuple[int, Span]]:
        """Tiles of the keys of a block: (number among the tiles of the head, place in the block)."""
        first = b.keys.start // self.size
        return [(first + i, span) for i, span in enumerate(spans(b.keys.size, self.size))]

    def _pieces(self, b: Block) -> list[Span]:
        """The first block in pieces, all others whole."""
        return cut_spans(b.keys.size, [] if b.number else [n * self.size for n in FIRST_TILES])

    def _score(self, b: Block, head: Head) -> None:
        """Q K^T of a block, to PSUM. Keys that a query does not see get the least number there is."""
        target, most = self.scores[b.number % 2][: b.q.size, :], self.k.cfg.tensor.moving_max
        moving = [Span(p.start + s.start, s.size) for p in self._pieces(b) for s in spans(p.size, most)]
        for i, (q_t, k_t) in enumerate(zip(head.q_t, head.k_t, strict=True)):
            self.k.tensor.load(q_t[:, b.q.start : b.q.stop])
            for part in moving:
                keys = k_t[:, b.keys.start + part.start : b.keys.start + part.stop]
                self.k.tensor.matmul(keys, target[:, part.start : part.stop], accumulate=i > 0)

        self.hidden.hide(b, target[:, : b.keys.size])

    def _sink(self, b: Block) -> TileView | None:
        """The sinks of a tile of queries, for its first block."""
        return self.sinks[: b.q.size, b.tile : b.tile + 1] if self.sinks is not None and b.first else None

    def _place_of_scaled(self, b: Block) -> TileView:
        return (self._scaled or self.scores)[b.number % 2][: b.q.size, : b.keys.size]

    def _scale(self, b: Block) -> None:
        """Scores divided by sqrt(dims) in FP32, and the maximum of the quotients."""
        source, target = self.scores[b.number % 2][: b.q.size, :], self._place_of_scaled(b)
        top = self._column("maximum" if b.first else "top", b)
        pieces, sink = self._pieces(b), self._sink(b)
        for i, piece in enumerate(pieces):
            place = slice(piece.start, piece.stop)
            how = "reduce" if i else "reset_reduce" if sink is None else "load_reduce"
            self.k.scalar.activation(
                target[:, place], source[:, place], "copy", scale=self.scale, reduce_op="max", reduce=how,
                init=None if i else sink, store=top if i == len(pieces) - 1 else None,
            )  # fmt: skip

    def _exponentials(self, b: Block, *, cut: bool) -> None:
        """Running maximum, exponentials in BF16, running sum, and its inverse for the last block of a tile."""
        vector = self.k.vector
        source = self._place_of_scaled(b)
        target = self.probabilities[b.number % 2][: b.q.size, : b.keys.size]
        maximum, total = self._column("maximum", b), self._column("total", b)
        before, sink = None, self._sink(b)
        if sink is not None:
            before = self._column("before", b)
            vector.exp(before, sink, maximum)
        if not b.first:
            shrink, before = self._column("shrink", b), self._column("before", b)
            vector.tensor_tensor(maximum, self._column("maximum", b, 1), "max", self._column("top", b))
            vector.exp(shrink, self._column("maximum", b, 1), maximum)
            vector.tensor_tensor(before, self._column("total", b, 1), "multiply", shrink)
        tiles = -(-b.keys.size // self.size)
        parts = spans(b.keys.size, -(-tiles // LAST_PIECES) * self.size if cut else b.keys.size)
        for i, part in enumerate(parts):
            how = "reduce" if i else "reset_reduce" if before is None else "load_reduce"
            place = slice(part.start, part.stop)
            vector.exp(
                target[:, place], source[:, place], maximum, reduce=how, init=None if i else before,
                store=total if i == len(parts) - 1 else None,
            )  # fmt: skip
        if b.last:
            vector.reciprocal(self._column("inverse", b), total)

    def _turn(self, b: Block, *, late: bool) -> None:
        """The probabilities transposed, tile by tile, and out of PSUM by the vector engine. At the very end, `late`,
        the scalar engine has nothing else to do and takes every other tile."""
        source, weights = (x[b.number % 2] for x in (self.probabilities, self.weights))
        for i, (_, keys) in enumerate(self._tiles(b)):
            place = slice(i * self.size, i * self.size + b.q.size)
            engine = self.k.scalar if late and i % 2 else self.k.vector
            engine.copy(weights[: keys.size, place], self._turned(source[: b.q.size, keys.start : keys.stop]))

    def _turned(self, source: TileView) -> TileView:
        """BF16 [rows, columns] transposed on the array, in PSUM."""
        rows = source.partitions
        turned = self._place()[: source.elements, :rows]
        self.k.tensor.load(source)
        self.k.tensor.matmul(self.identity[:rows, :rows], turned, part="transpose")
        return turned

    def transpose(self, target: TileView, source: TileView) -> None:
        """target [columns, rows] = source [rows, columns], both BF16 and no larger than the array, in the middle of the
        work too. The scalar engine takes it out of PSUM."""
        self.k.scalar.copy(target, self._turned(source))

    def _place(self) -> TileView:
        """The next place for a transpose, in another bank than the one before, where two engines read."""
        number, tile = divmod(self._turns, len(self.turned))
        self._turns += 1
        at = number % (self.turned[0].columns // self.size) * self.size
        return self.turned[tile][:, at : at + self.size]

    def _sums(self, b: Block) -> TileView:
        return self.slots[b.number % len(self.slots)][: b.q.size, :]

    def _weigh(self, b: Block, head: Head) -> None:
        """Probabilities times values, to PSUM."""
        weights, sums = self.weights[b.number % 2], self._sums(b)
        for i, (number, keys) in enumerate(self._tiles(b)):
            self.k.tensor.load(weights[: keys.size, keys.start : keys.start + b.q.size])
            self.k.tensor.matmul(head.v[number][: keys.size, :], sums, accumulate=i > 0)

    def _collect(self, b: Block, store: Callable[[Result], None], *, last: bool) -> None:
        """Add a block's part to the output of its tile; hand on a finished tile."""
        sums = self._sums(b)
        out = sums if b.first and b.last else self.out[b.tile % 2][: b.q.size, :]
        if b.first and not b.last:
            self.k.scalar.copy(out, sums)
        elif not b.first:
            self.k.vector.scalar_tensor_tensor(out, out, "multiply", self._column("shrink", b), "add", sums)
        if b.last:
            store(Result(b.head, b.q, out, self._column("inverse", b), last))
