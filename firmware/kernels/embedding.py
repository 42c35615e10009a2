"""Workload `embedding`: rows of a table in pages, as token numbers choose them; the vector engine works out where.

The pages of the table lie in HBM in any order, and a map, also there, says where each is. The map's entries are
gathered by the pages of the tokens, their rows by entry and place in the page: both lists of indices are of the run.
"""

from typing import Any

import numpy as np

from firmware.kernel import Kernel, KernelError
from firmware.kernels.spans import spans
from firmware.numbers import element_bytes
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["embedding"]

_BLOCKS = 2  # of rows under way


def embedding(cfg: Config, table: np.ndarray, ids: np.ndarray, *, page: int, seed: int, dtype: str = "bf16") -> Program:
    """A program for a table [vocabulary, width], given as bits, and the numbers of tokens, from 0 to less than
    `vocabulary`. `page`: rows of a page, a power of two. Output: `y` [tokens, width], bit for bit rows of the table.

    Errors: KernelError.
    """
    vocabulary, width = table.shape
    if page < 1 or page & (page - 1):
        raise KernelError(f"page must be a power of two, not {page}")
    if not len(ids) or ids.min() < 0 or ids.max() >= vocabulary:
        raise KernelError(f"tokens have numbers from 0 to {vocabulary - 1}, the rows of the table")
    p, tokens = cfg.partitions, len(ids)
    blocks = -(-tokens // p)
    pages = -(-vocabulary // page)
    rng = np.random.default_rng(seed)
    place = rng.permutation(pages)  # of each page
    stored = np.zeros((pages * page, width), table.dtype)
    for n, at in enumerate(place):
        rows = table[n * page : (n + 1) * page]
        stored[at * page : at * page + len(rows)] = rows
    k = Kernel(cfg, "embedding")
    source, target = k.hbm("table", stored.shape, dtype, stored), k.hbm("y", (tokens, width), dtype)
    where = k.hbm("pages", (pages, 1), "int32", place.astype(np.uint32).reshape(-1, 1))
    padded = np.zeros(blocks * p, np.uint32)
    padded[:tokens] = ids
    given = k.hbm("ids", (p, blocks), "int32", np.ascontiguousarray(padded.reshape(blocks, p).T))
    numbers, entries, rows_of = (
        k.sbuf(name, partitions=p, columns=blocks, dtype="int32") for name in ("numbers", "entries", "rows")
    )
    shift = page.bit_length() - 1
    k.dma(numbers[:, :], given[:, :])
    k.vector.tensor_scalar(rows_of[:, :], numbers[:, :], "shift_right", shift)
    k.gather(entries[:, :].split(0, 1), where[:, :], rows_of[:, :])
    k.vector.tensor_scalar(numbers[:, :], numbers[:, :], "bit_and", page - 1)
    k.vector.scalar_tensor_tensor(rows_of[:, :], entries[:, :], "shift_left", shift, "bit_or", numbers[:, :])
    room = k.sbuf_free() // 16 * 16 // (-(-width * element_bytes(dtype) // 16) * 16)
    if room < 1:
        raise KernelError(f"a row of width={width} is more than a partition of SBUF holds")
    at_once = min(blocks, max(1, room // _BLOCKS))
    tiles = [k.sbuf(f"block{n}", partitions=p, columns=at_once * width, dtype=dtype) for n in range(min(_BLOCKS, room))]
    for n, cut in enumerate(spans(blocks, at_once)):
        tile = tiles[n % len(tiles)][:, : cut.size * width].split(0, width)
        k.gather(tile, source[:, :], rows_of[:, cut.start : cut.stop], ring=0)
        whole = min(cut.stop, tokens // p) - cut.start
        if whole:
            some = target[cut.start * p : (cut.start + whole) * p, :].split(0, p).permute((1, 0, 2))
            k.dma(some, tile[:, :whole])
        if cut.start + whole < cut.stop:
            rest = tokens % p
            k.dma(target[tokens - rest :, :], tile[:rest, whole : whole + 1])

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """How many elements are not those of the table."""
        return {"wrong_elements": int(np.count_nonzero(outputs["y"] != table[ids]))}

    return k.program(
        metrics=metrics, notes=[f"{tokens} tokens, {pages} pages of {page} rows in random order, found by a map in HBM"]
    )
