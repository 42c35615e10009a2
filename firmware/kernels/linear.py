"""Linear layers whose weights stream from HBM: results by features or by tokens.

Weights lie K-major, [K, N]. A slot of SBUF takes the rows of one K tile and some columns; all results that these
columns touch grow in PSUM at once, so that weights are read once for as many tokens as half of PSUM holds. The halves
are used in turn: while the results in one leave, the array fills the other.
"""

from collections.abc import Callable, Sequence

from firmware.kernel import HbmView, Kernel, KernelError, Tile, TileView
from firmware.kernels.spans import Span, even_spans, spans

__all__ = ["Linear", "Operand", "Take", "psum_tiles"]

SLOT_COLUMNS = 512
NARROW = 64  # a moving operand of fewer columns does not hide the load of the next stationary one
PAIR = 2  # sums of a PSUM word

Operand = Callable[[int, Span], TileView]
"""K tile and tokens -> x^T [at least the rows of the K tile, tokens], BF16."""

Take = Callable[[Span, Span, TileView], None]
"""What lies on partitions, what along them, their sums in PSUM."""


def psum_tiles(k: Kernel, columns: int) -> list[TileView]:
    """All PSUM that is free, as tiles of `columns` sums: in banks of their own where these are as large."""
    size = min(k.cfg.tensor.rows, k.cfg.tensor.cols)
    align = k.cfg.psum.bank_bytes if columns * 4 == k.cfg.psum.bank_bytes else 4 * PAIR
    found: list[TileView] = []
    while k.psum_free(align) >= columns * 4:
        found.append(k.psum(f"linear{len(found)}", partitions=size, columns=columns, align=align)[:, :])
    return found


class Linear:
    """Slots for weights, and tiles of PSUM of one width."""

    def __init__(self, k: Kernel, sums: Sequence[TileView], slots: int, *, tokens_max: int | None = None):
        """sums: tiles [size, columns]; slots: chunks of weights in SBUF at a time; tokens_max: most tokens that x is
        asked for at once."""
        cfg = k.cfg
        self.k = k
        self.size = min(cfg.tensor.rows, cfg.tensor.cols)
        self.width = min(tile.elements for tile in sums)
        if len(sums) < 2 or self.width < self.size:
            raise KernelError(
                f"a linear layer needs two tiles of PSUM with {self.size} sums a partition, not {len(sums)} "
                f"with {self.width}"
            )
        self.tokens_max = max(self.size, tokens_max or cfg.sbuf.partition_bytes)
        self.halves = [sums[::2], sums[1::2]]
        self.banks = len(self.halves[1])
        self.columns = max(self.size, min(SLOT_COLUMNS, cfg.tensor.moving_max))
        self.slots: list[Tile] = [
            k.sbuf(f"chunk{i}", partitions=self.size, columns=self.columns, dtype="bf16") for i in range(slots)
        ]
        self._loaded = 0
        self._groups = 0

    def _chunk(self, weights: HbmView, rows: Span, columns: Span) -> TileView:
        """A chunk of weights, on its way to the next slot."""
        slot = self.slots[self._loaded % len(self.slots)][: rows.size, : columns.size]
        self._loaded += 1
        self.k.dma(slot, weights[rows.start : rows.stop, columns.start : columns.stop])
        return slot

    def _capacity(self, width: int) -> int:
        """Results of `width` columns that half of PSUM holds."""
        return self.banks * (self.width // (-(-width // PAIR) * PAIR) if width <= self.width else 0)

    def targets(self, count: int, width: int) -> list[TileView]:
        """Places for `count` results of `width` columns in the half whose turn it is."""
        self._groups += 1
        step = -(-width // PAIR) * PAIR
        places = [
            tile[:, at : at + width]
            for tile in self.halves[self._groups % 2]
            for at in range(0, self.width - width + 1, step)
        ]
        return places[:count]

    def by_features(self, weights: HbmView, x: Operand, tokens: int, take: Take) -> None:
        """W^T x^T with features on partitions: take(features, tokens, sums)."""
        depth = spans(weights.shape[0], self.size)
        for part in even_spans(tokens, min(self.width, self.k.cfg.tensor.moving_max, self.tokens_max)):
            wide = min(self.columns // self.size, self._capacity(part.size)) * self.size
            for columns in spans(weights.shape[1], wide):
                tiles = spans(columns.size, self.size)
                targets = self.targets(len(tiles), part.size)
                for i, rows in enumerate(depth):
                    chunk, moving = self._chunk(weights, rows, columns), x(i, part)[: rows.size, :]
                    for tile, target in zip(tiles, targets, strict=True):
                        self.k.tensor.load(chunk[:, tile.start : tile.stop])
                        self.k.tensor.matmul(moving, target[: tile.size, :], accumulate=i > 0)
                for tile, target in zip(tiles, targets, strict=True):
                    take(Span(columns.start + tile.start, tile.size), part, target[: tile.size, :])

    def by_tokens(self, weights: HbmView, x: Operand, tokens: int, take: Take) -> None:
        """x W with tokens on partitions: take(tokens, columns, sums)."""
        depth = spans(weights.shape[0], self.size)
        tiles = spans(tokens, self.size)
        wide = min(self.columns, self.width, weights.shape[1])
        # Narrower results, so that one pass of the weights serves more tokens.
        share = 1
        while self._capacity(wide) < len(tiles) and self.width // (share + 1) // 8 * 8 >= NARROW:
            share += 1
            wide = min(wide, self.width // share // 8 * 8)
        together = min(self._capacity(wide), self.tokens_max // self.size)
        for group in (tiles[at : at + together] for at in range(0, len(tiles), together)):
            whole = Span(group[0].start, group[-1].stop - group[0].start)
            for columns in spans(weights.shape[1], wide):
                targets = self.targets(len(group), columns.size)
                for i, rows in enumerate(depth):
                    chunk, stationary = self._chunk(weights, rows, columns), x(i, whole)[: rows.size, :]
                    for tile, target in zip(group, targets, strict=True):
                        first = tile.start - whole.start
                        self.k.tensor.load(stationary[:, first : first + tile.size])
                        self.k.tensor.matmul(chunk, target[: tile.size, :], accumulate=i > 0)
                for tile, target in zip(group, targets, strict=True):
                    take(tile, columns, target[: tile.size, :])
