"""Workload `dma` with `indices`: the rows of a table in HBM, in random order, as indices in SBUF choose them."""

import numpy as np

from firmware.kernel import Kernel, KernelError
from firmware.program import Program
from firmware.views import TileView
from rtl.contract.config import Config

__all__ = ["INDICES", "dma_indices", "most_blocks"]

INDICES = ("down", "along")
_DESCRIPTORS = 16
_SAMPLES = 4  # descriptors whose rows come back


def most_blocks(cfg: Config, row_bytes: int, indices: str) -> int:
    """Blocks of P rows that SBUF has room for, and for their indices."""
    used = -(-row_bytes // 16) * 16 + (4 if indices == "down" else 4 * cfg.partitions)  # of each partition
    return (cfg.sbuf.partition_bytes - 64) // used


def dma_indices(cfg: Config, *, indices: str, rows: int, row_bytes: int, direction: str, seed: int) -> Program:
    """A program that gathers `rows` rows from a table of so many (`read`), or scatters as many to one (`write`), each
    once, in random order. Row i lies on partition i mod P. The indices of a block of P rows lie `down` the partitions,
    a word each, or `along` one. Errors: KernelError.
    """
    if direction not in ("read", "write"):
        raise KernelError(f"indices go with direction=read or write, not {direction}")
    p = cfg.partitions
    if rows % p:
        raise KernelError(f"rows must be a multiple of the {p} partitions with indices, not {rows}")
    blocks = rows // p
    most = most_blocks(cfg, row_bytes, indices)
    if most == 0:
        raise KernelError(f"row_bytes={row_bytes} and indices are more than a partition of SBUF holds")
    if blocks > most:
        raise KernelError(f"rows must be at most {most * p} with row_bytes={row_bytes} and indices, not {rows}")
    rng = np.random.default_rng(seed)
    k = Kernel(cfg, "dma")
    order = rng.permutation(rows).astype(np.int32).reshape(blocks, p)
    data = rng.integers(0, 256, (rows, row_bytes), np.uint8)
    given = k.hbm("rows", data.shape, "uint8", data)
    tile = k.sbuf("blocks", partitions=p, columns=blocks * row_bytes, dtype="uint8")
    each = max(1, blocks // _DESCRIPTORS)
    parts = [(at, min(each, blocks - at)) for at in range(0, blocks, each)]
    places = _places(k, order, parts, down=indices == "down")
    reads, last = list(range(0, cfg.dma.rings, 2)), cfg.dma.rings - 1
    if direction == "write":
        k.dma(tile[:, :].split(0, row_bytes), given[:, :].split(0, p).permute((1, 0, 2)))
        written = k.hbm("scattered", (rows, row_bytes), "uint8")
    kept = list(range(0, len(parts), max(1, len(parts) // _SAMPLES)))
    for n, ((at, count), chosen) in enumerate(zip(parts, places, strict=True)):
        here = tile[:, at * row_bytes : (at + count) * row_bytes].split(0, row_bytes)
        if direction == "read":
            k.gather(here, given[:, :], chosen, ring=reads[n % len(reads)])
        else:
            k.scatter(written[:, :], here, chosen, ring=reads[n % len(reads)])
    for n in kept if direction == "read" else ():
        at, count = parts[n]
        back = k.hbm(f"read_back{n}", (count * p, row_bytes), "uint8")
        here = tile[:, at * row_bytes : (at + count) * row_bytes].split(0, row_bytes)
        k.dma(back[:, :].split(0, p).permute((1, 0, 2)), here, ring=last)
    what = "gathered from" if direction == "read" else "scattered to"
    return k.program(
        notes=[f"{rows} rows of {row_bytes} bytes are {what} a table of as many, each once, in random order"]
    )


def _places(k: Kernel, order: np.ndarray, parts: list[tuple[int, int]], *, down: bool) -> list[TileView]:
    """The indices of each part in SBUF; `order`: of each block those of its rows."""
    p = k.cfg.partitions
    if down:
        columns = np.ascontiguousarray(order.T)
        tile = k.sbuf("indices", partitions=p, columns=len(order), dtype="int32")
        k.dma(tile[:, :], k.hbm("order", columns.shape, "int32", columns.view(np.uint32))[:, :])
        return [tile[:, at : at + count] for at, count in parts]
    longest = max(count for _, count in parts) * p
    deep = -(-len(parts) // p)
    tile = k.sbuf("indices", partitions=min(p, len(parts)), columns=deep * longest, dtype="int32")
    found: list[TileView] = []
    for n, (at, count) in enumerate(parts):
        mine = order[at : at + count].reshape(1, -1)
        first = n // p * longest
        here = tile[n % p : n % p + 1, first : first + mine.size]
        k.dma(here, k.hbm(f"order{n}", mine.shape, "int32", mine.view(np.uint32))[:, :])
        found.append(here)
    return found
