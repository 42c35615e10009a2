"""attention on the machine's pipeline of scores, exponentials and products (kernels/attention_core.py), in BF16."""

from math import sqrt

from firmware.graph.arrays import Array
from firmware.graph.emitter import Emitter
from firmware.kernel import Kernel, KernelError, Tile, TileView
from firmware.kernels.attention_blocks import Block, Sight, key_block
from firmware.kernels.attention_core import Attention, Head, Result
from firmware.kernels.spans import Span, spans
from firmware.views import HbmView

__all__ = ["Flash", "fits"]

STAGES = 3
BEFORE = 4  # rows on their way to the array
HIDDEN = -1e30  # a score is no less: the maximum of a block of keys that a mask hides is a number, not -inf


def _sets(cfg_heads: int) -> int:
    """Sets of operands: at most so many heads are in use at a time, whatever their size."""
    return min(cfg_heads, 7)


def fits(e: Emitter, q: Array, k: Array, v: Array) -> bool:
    """Whether operands and scores have room."""
    cfg, free = e.cfg, e.k.sbuf_free()
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    try:
        block, _ = key_block(cfg, v.shape[3])
    except KernelError:
        return False
    if v.shape[3] > cfg.tensor.moving_max:
        return False
    block = min(block, -(-k.shape[2] // size) * size)
    deep, tall = -(-q.shape[3] // size), -(-k.shape[2] // size)

    def row(count: int, width: int) -> int:
        return count * (-(-width // 16) * 16)

    operands = row(deep, 2 * q.shape[2]) + row(deep, 2 * k.shape[2]) + row(tall, 2 * v.shape[3])
    own = row(8, 2 * block) + row(5, 4 * v.shape[3]) + 16 * 32 + row(2, 4 * block) + 1024 + row(2, 4 * block)
    own += row(2 * BEFORE, 6 * max(q.shape[3], v.shape[3]))
    return operands * _sets(q.shape[0] * q.shape[1]) + own <= free


class _Masked(Attention):
    """Adds a mask to the scores, which are divided afterwards."""

    def __init__(self, k: Kernel, dims: int, sight: Sight, identity: HbmView, values: int, scale: float):
        super().__init__(k, dims, sight, identity, values=values)
        self.scale = scale
        self.mask: Array | None = None  # [B, H, S, T]
        self.heads = 1
        self._held: list[Tile] = []

    def room(self, mask: Array, heads: int) -> None:
        """mask [B, H, S, T]."""
        self.mask, self.heads = mask, heads
        self._held = [
            self.k.sbuf(f"mask {i}", partitions=self.size, columns=self.block, dtype=mask.dtype) for i in range(2)
        ]

    def _score(self, b: Block, head: Head) -> None:
        super()._score(b, head)
        if self.mask is None:
            return
        mask = self.mask.at(0, b.head // self.heads).at(0, b.head % self.heads)
        part = mask.part(0, b.q.start, b.q.size).part(1, b.keys.start, b.keys.size)
        held = self._held[b.number % 2][: b.q.size, : b.keys.size]
        self.k.dma(held, part.view())
        scores = self.scores[b.number % 2][: b.q.size, : b.keys.size]
        self.k.vector.scalar_tensor_tensor(scores, held, "multiply", 1 / self.scale, "add", scores)
        self.k.vector.tensor_scalar(scores, scores, "max", HIDDEN)


class Flash:
    """One node. q [B, H, S, D], key [B, G, T, D], v [B, G, T, E], out [B, H, S, E], mask [B, H, S, T], strided."""

    def __init__(self, e: Emitter, q: Array, key: Array, v: Array, out: Array, scale: float | None, causal: bool):
        self.e, self.k = e, e.k
        self.q, self.key, self.v, self.out = q, key, v, out
        self.share = q.shape[1] // key.shape[1]
        dims, values = q.shape[3], v.shape[3]
        sight = Sight(q.shape[2], key.shape[2], causal)
        scale = 1 / sqrt(dims) if scale is None else scale
        self.core = _Masked(e.k, dims, sight, e.identity(), values, scale)
        self.size = size = self.core.size
        self.deep = spans(dims, size)
        self.sets = _sets(q.shape[0] * q.shape[1])
        k, kinds = e.k, {"q": q.dtype, "k": key.dtype, "v": v.dtype}

        def tiles(name: str, count: int, columns: int, dtype: str) -> list[Tile]:
            return [k.sbuf(f"{name} {i}", partitions=size, columns=columns, dtype=dtype) for i in range(count)]

        self.q_t = [tiles(f"q_t {i}", len(self.deep), q.shape[2], "bf16") for i in range(self.sets)]
        self.k_t = [tiles(f"k_t {i}", len(self.deep), key.shape[2], "bf16") for i in range(self.sets)]
        self.v_s = [tiles(f"v {i}", -(-v.shape[2] // size), values, "bf16") for i in range(self.sets)]
        wide = {"q": dims, "k": dims, "v": values}
        self.rows = {n: tiles(f"rows {n}", BEFORE, wide[n], kind) for n, kind in kinds.items() if n != "v"}
        if v.dtype != "bf16":
            self.rows["v"] = tiles("rows v", BEFORE, values, v.dtype)
        self.cast = tiles("cast", BEFORE, dims, "bf16")
        self.stages = tiles("stage", STAGES, values, out.dtype)
        self._turns: dict[str, int] = {}
        self._stored = 0

    def run(self, mask: Array | None) -> None:
        """All heads of all batches."""
        batch, heads = self.q.shape[:2]
        if mask is not None:
            self.core.room(mask.expand((batch, heads, self.q.shape[2], self.key.shape[2])), heads)
        self.core.run(batch * heads, self._load, self._store)

    def _next(self, name: str, tiles: list[Tile]) -> Tile:
        turn = self._turns.get(name, 0)
        self._turns[name] = turn + 1
        return tiles[turn % len(tiles)]

    def _rows(self, name: str, source: Array) -> TileView:
        """A piece of an operand in SBUF."""
        kept = self.e.kept.view(source)
        if kept is not None:
            return kept
        rows = self._next(name, self.rows[name])[: source.shape[0], : source.shape[1]]
        self.k.dma(rows, source.view())
        return rows

    def _turned(self, name: str, targets: list[Tile], source: Array) -> list[TileView]:
        """source [tokens, dims] as BF16 [dims, tokens]."""
        for part in spans(source.shape[0], self.size):
            rows = self._rows(name, source.part(0, part.start, part.size))
            if rows.dtype != "bf16":
                cast = self._next("cast", self.cast)[: part.size, : source.shape[1]]
                self.k.scalar.copy(cast, rows)
                rows = cast
            for target, depth in zip(targets, self.deep, strict=True):
                place = target[: depth.size, part.start : part.stop]
                self.core.transpose(place, rows[:, depth.start : depth.stop])
        return [t[: d.size, : source.shape[0]] for t, d in zip(targets, self.deep, strict=True)]

    def _load(self, number: int) -> Head:
        self.core.load_identity()
        b, h = divmod(number, self.q.shape[1])
        place = number % self.sets
        q_t = self._turned("q", self.q_t[place], self.q.at(0, b).at(0, h))
        g = h // self.share
        k_t = self._turned("k", self.k_t[place], self.key.at(0, b).at(0, g))
        v = self.v.at(0, b).at(0, g)
        held: list[TileView] = []
        for part, tile in zip(spans(v.shape[0], self.size), self.v_s[place], strict=True):
            source = v.part(0, part.start, part.size)
            target = tile[: part.size, :]
            kept = self.e.kept.view(source)
            if kept is not None and kept.dtype == "bf16":
                target = kept
            elif v.dtype != "bf16":
                self.k.scalar.copy(target, self._rows("v", source))
            else:
                self.k.dma(target, source.view())
            held.append(target)
        return Head(q_t, k_t, held)

    def _store(self, result: Result) -> None:
        b, h = divmod(result.head, self.q.shape[1])
        rows: Span = result.queries
        target = self.out.at(0, b).at(0, h).part(0, rows.start, rows.size)
        kept = self.e.kept.view(target)
        stage = self.stages[self._stored % STAGES][: rows.size, :] if kept is None else kept
        self._stored += 1
        self.core.divide(stage, result)
        if kept is None:
            self.k.dma(target.view(), stage)
