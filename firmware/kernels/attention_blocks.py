"""How flash attention cuts its work: blocks of keys that fit PSUM, and their order."""

from dataclasses import dataclass

from firmware.kernel import KernelError
from firmware.kernels.spans import Span, even_spans, spans
from rtl.contract.config import Config

__all__ = ["Block", "Sight", "blocks", "identity_bits", "key_block", "turned_columns"]


@dataclass(frozen=True, slots=True)
class Sight:
    """Which of `keys` keys `queries` queries see; the last query stands at the last key.

    causal: those up to its own place; window: of these the last so many.
    """

    queries: int
    keys: int
    causal: bool = False
    window: int | None = None

    def __post_init__(self) -> None:
        if self.causal and self.queries > self.keys:
            raise KernelError(f"a causal query stands at a key: at most {self.keys} queries, not {self.queries}")
        if self.window is not None and (not self.causal or self.window < 1):
            raise KernelError(f"a window is of at least one key and needs causal=true, not window={self.window}")

    def seen(self, q: Span) -> Span:
        """Keys that some query of `q` sees."""
        if not self.causal:
            return Span(0, self.keys)
        stop = self.place(q.stop)
        start = 0 if self.window is None else max(0, self.place(q.start) + 1 - self.window)
        return Span(start, stop - start)

    def place(self, query: int) -> int:
        """The key at which a query stands."""
        return self.keys - self.queries + query

    @property
    def pairs(self) -> int:
        """Queries times the keys that they see."""
        return sum(self.seen(Span(i, 1)).size for i in range(self.queries))


@dataclass(frozen=True, slots=True)
class Block:
    """A tile of queries of a head against a block of keys; `number` counts all blocks, `tile` all tiles."""

    number: int
    tile: int
    head: int
    q: Span
    keys: Span
    first: bool
    last: bool
    hidden: tuple[int, int]  # of these keys, as many first and last ones are hidden from some query or other


def identity_bits(size: int) -> list[list[int]]:
    """BF16 bits of the identity."""
    return [[0x3F80 if r == c else 0 for c in range(size)] for r in range(size)]


def _room(cfg: Config, keys: int, dims: int, align: int) -> int:
    """Bytes of a PSUM partition that two of each of scores, transposes and outputs take."""
    return sum(2 * (-(-n * 4 // align) * align) for n in (keys, turned_columns(cfg, keys), dims))


def turned_columns(cfg: Config, keys: int) -> int:
    """Columns of a tile of transposes."""
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    return -(-min(keys, cfg.tensor.moving_max) // size) * size


def key_block(cfg: Config, dims: int) -> tuple[int, int]:
    """Keys of a block, and the alignment of everything in PSUM: the largest block that fits, in banks of its own
    if possible. KernelError if none fits."""
    size = min(cfg.tensor.rows, cfg.tensor.cols)
    for align in (cfg.psum.bank_bytes, 4):
        keys = 2 * cfg.tensor.moving_max
        while keys >= size:
            if _room(cfg, keys, dims, align) <= cfg.psum.partition_bytes:
                return keys, align
            keys //= 2
    raise KernelError(
        f"a head of {dims} needs {_room(cfg, size, dims, 4)} bytes of each PSUM partition, more than there are "
        f"({cfg.psum.partition_bytes})"
    )


def blocks(heads: int, sight: Sight, size: int, keys: int) -> list[Block]:
    """All blocks of up to `keys` keys in order: keys of a tile, tiles of `size` queries of a head, heads."""
    found: list[Block] = []
    tile = 0
    for head in range(heads):
        for q in spans(sight.queries, size):
            # Blocks that no query of the tile sees are left out.
            seen = sight.seen(q)
            first = seen.start // size * size
            parts = [Span(first + s.start, s.size) for s in even_spans(seen.stop - first, keys, size)]
            for i, span in enumerate(parts):
                early = late = 0
                at = sight.place(q.start)
                if sight.causal and span.stop - 1 > at:
                    late = span.stop - max(span.start, at)
                if sight.window is not None:
                    early = min(span.size, max(0, sight.place(q.stop) - sight.window - span.start))
                found.append(Block(len(found), tile, head, q, span, i == 0, i == len(parts) - 1, (early, late)))
            tile += 1
    return found
