"""How flash attention cuts its work: blocks of keys that fit PSUM, and their order."""

from dataclasses import dataclass

from firmware.kernel import KernelError
from firmware.kernels.spans import Span, even_spans, spans
from rtl.contract.config import Config

__all__ = ["Block", "blocks", "identity_bits", "key_block", "turned_columns"]


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
    masked: bool  # some query does not see all of these keys


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


def blocks(heads: int, tokens: int, size: int, keys: int, *, causal: bool) -> list[Block]:
    """All blocks of up to `keys` keys in order: keys of a tile, tiles of `size` queries of a head, heads."""
    found: list[Block] = []
    tile = 0
    for head in range(heads):
        for q in spans(tokens, size):
            # Blocks that lie above the diagonal as a whole are left out.
            parts = even_spans(min(tokens, q.stop) if causal else tokens, keys, size)
            for i, span in enumerate(parts):
                masked = causal and span.stop - 1 > q.start
                found.append(Block(len(found), tile, head, q, span, i == 0, i == len(parts) - 1, masked))
            tile += 1
    return found
