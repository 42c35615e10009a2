"""Workload `dma -p classes=`: rows of several traffic classes at once, so that their shares and latencies show.

A class has a ring and a queue of its own and as many rows as the others, in a few long descriptors: with short ones the
descriptors under way, and not the movers, decide who goes. Which classes go first, and how much each has, says the
configuration that `of_classes` makes.
"""

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError, Tile
from firmware.numbers import element_bytes, encode
from firmware.program import Program
from firmware.views import CopyView
from rtl.contract.config import Config, ConfigError
from rtl.contract.config_changes import changed
from rtl.contract.config_sections import DMA_CLASSES
from rtl.contract.isa import Queue

__all__ = [
    "CLASS_DIRECTIONS",
    "HOST_BYTES_MAX",
    "ROW_BYTES_MAX",
    "dma_classes",
    "longest_row",
    "of_classes",
    "random_rows",
]

CLASS_DIRECTIONS = ("read", "write", "inside")
DESCRIPTORS = 8  # of a class
DEFAULT_BYTES = 1 << 20  # of a class
ROW_BYTES_MAX = 1 << 18  # of a descriptor
HOST_BYTES_MAX = 1 << 30  # host memory holds what is moved several times over
_QUEUES = (Queue.SYNC, Queue.VECTOR, Queue.SCALAR, Queue.TENSOR)  # a class that waits holds no other


def random_rows(k: Kernel, rng: np.random.Generator, name: str, shape: tuple[int, int], add: str | None) -> HbmView:
    """An input of random bytes, or of values of the format in which it is added: normal ones, or any int32."""
    if add in ("fp32", "bf16"):
        return k.hbm(name, shape, add, encode(rng.standard_normal(shape, np.float32), add))
    kind = np.uint32 if add else np.uint8
    return k.hbm(name, shape, add or "uint8", rng.integers(0, np.iinfo(kind).max, shape, kind, endpoint=True))


def _counted(classes: str) -> int:
    """How many classes weights as 8:4:2:1 are for."""
    count = len(classes.split(":"))
    if not 2 <= count <= DMA_CLASSES:
        raise KernelError(f"classes must be 2 to {DMA_CLASSES} weights, as in 8:4:2:1, not {classes}")
    return count


def of_classes(cfg: Config, classes: str | None, strict: int | None) -> Config:
    """`cfg` with these weights and this strict class, four classes and a ring each. Errors: KernelError."""
    if classes is None:
        if strict is not None:
            raise KernelError(f"strict={strict} needs classes, as in classes=8:4:2:1")
        return cfg
    count = _counted(classes)
    if strict is not None and not -1 <= strict < count:
        raise KernelError(f"strict must be -1 (none) or a class from 0 to {count - 1}, not {strict}")
    dma = {
        "weights": ":".join([classes, *["1"] * (DMA_CLASSES - count)]),
        "strict_class": cfg.dma.strict_class if strict is None else strict,
        "classes": DMA_CLASSES,
        "rings": max(cfg.dma.rings, count),
    }
    try:
        return changed(cfg, {"dma": dma}, "classes")
    except ConfigError as error:
        raise KernelError(f"classes={classes}: {error}") from None


def longest_row(cfg: Config, classes: str, direction: str) -> int:
    """Most bytes of a row with these classes. Errors: KernelError."""
    if direction == "write":
        return ROW_BYTES_MAX
    return cfg.sbuf.partition_bytes // (_counted(classes) * DESCRIPTORS + 1) // 16 * 16


def dma_classes(
    cfg: Config, *, classes: str, rows: int | None, row_bytes: int, direction: str, add: str | None, seed: int
) -> Program:
    """A program that moves `rows` rows of each class, in a direction of CLASS_DIRECTIONS, or adds them in SBUF.

    Without `rows`: as many as SBUF holds, at most DEFAULT_BYTES of a class. What lands in SBUF comes back. Errors:
    KernelError.
    """
    count, p = _counted(classes), cfg.partitions
    if direction not in CLASS_DIRECTIONS:
        raise KernelError(f"classes go with direction={', '.join(CLASS_DIRECTIONS)}, not {direction}")
    room = -(-row_bytes // 16) * 16
    longest = longest_row(cfg, classes, direction)
    if row_bytes > longest:
        raise KernelError(
            f"row_bytes must be at most {longest} with {count} classes and direction={direction}, not {row_bytes}: "
            f"each has {DESCRIPTORS} rows on a partition at least"
        )
    if direction == "write":
        fits = min(cfg.hbm.capacity_mib << 19, HOST_BYTES_MAX) // count // row_bytes // p
    else:
        fits = (cfg.sbuf.partition_bytes - room) // count // row_bytes
    blocks = min(fits, max(DESCRIPTORS, DEFAULT_BYTES // row_bytes // p)) if rows is None else rows // p
    if not DESCRIPTORS <= blocks <= fits or (rows is not None and rows % p):
        raise KernelError(
            f"rows of a class must be a multiple of {p} (partitions) from {DESCRIPTORS * p} to {fits * p} with "
            f"direction={direction} and row_bytes={row_bytes}, not {blocks * p if rows is None else rows}"
        )
    made = _Classes(Kernel(cfg, "dma"), blocks, row_bytes, add, seed)
    made.move(range(count), direction)
    note = f"{count} classes move {blocks} rows of {row_bytes} bytes to or from each partition, with a ring each"
    return made.k.program(notes=[note])


class _Classes:
    """Rows of classes: `blocks` on each partition."""

    def __init__(self, k: Kernel, blocks: int, row_bytes: int, add: str | None, seed: int):
        self.k, self.blocks, self.add = k, blocks, add
        self.rng = np.random.default_rng(seed)
        self.dtype = add or "uint8"
        self.width = row_bytes // element_bytes(self.dtype)  # elements of a row
        self.p = k.cfg.partitions

    def random(self, name: str, rows: int) -> HbmView:
        """An input of so many rows."""
        return random_rows(self.k, self.rng, name, (rows, self.width), self.add)

    def move(self, classes: range, direction: str) -> None:
        """Descriptors of all classes in turn, those of one on a queue of its own."""
        k, p, width, blocks = self.k, self.p, self.width, self.blocks
        to_sbuf = direction != "write"
        pattern = k.sbuf("pattern", partitions=p, columns=width, dtype=self.dtype)
        k.dma(pattern[:, :], self.random("pattern_rows", p)[:, :], ring=0, queue=_QUEUES[0])
        sources = [self.random(f"rows{c}", blocks * p) if direction == "read" else None for c in classes]
        tiles: list[Tile] = []
        if to_sbuf:
            tiles = [k.sbuf(f"class{c}", partitions=p, columns=blocks * width, dtype=self.dtype) for c in classes]
        outs = [k.hbm(f"out{c}", (p, blocks * width) if to_sbuf else (blocks * p, width), self.dtype) for c in classes]

        def copy(c: int, dst: CopyView, src: CopyView, add: str | None = None) -> None:
            k.dma(dst, src, ring=c, queue=_QUEUES[c], class_=c, add=add)

        for c, tile in enumerate(tiles if self.add else []):
            copy(c, tile[:, :].split(0, width), pattern[:, :].repeat(blocks))
        each = blocks // DESCRIPTORS
        for n in range(DESCRIPTORS):
            first, last = n * each, blocks if n == DESCRIPTORS - 1 else (n + 1) * each
            for c in classes:
                source = sources[c]
                wide = pattern[:, :].repeat(last - first)
                if source is not None:
                    wide = source[first * p : last * p].split(0, p).permute((1, 0, 2))
                if to_sbuf:
                    copy(c, tiles[c][:, first * width : last * width].split(0, width), wide, self.add)
                else:
                    copy(c, outs[c][first * p : last * p].split(0, p).permute((1, 0, 2)), wide)
        for c, tile in enumerate(tiles):
            copy(c, outs[c][:, :], tile[:, :])
