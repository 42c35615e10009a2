"""Workload `dma`: rows between HBM and SBUF, copied or added, as fast as the movers go.

Row i lies on partition i mod P, so that P successive rows (a block) fill every mover. What DMA writes
to SBUF comes back in samples, for only HBM is compared.
"""

import numpy as np

from firmware.kernel import HbmView, Kernel, KernelError, Tile
from firmware.kernels.dma_classes import HOST_BYTES_MAX, dma_classes, longest_row, of_classes, random_rows
from firmware.kernels.dma_descriptors import dma_descriptors
from firmware.kernels.dma_indices import dma_indices, most_blocks
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["ADDS", "DIRECTIONS", "dma_copy"]

DIRECTIONS = ("read", "write", "both", "sbuf", "inside")
ADDS = {"fp32": 4, "bf16": 2, "int32": 4}  # bytes of an element
DEFAULT_BYTES = 8 << 20
ROW_BYTES = 512
DEFAULT_ACROSS_BYTES = 512 << 10  # between movers SBUF copies go through one crossbar, 16 bytes a cycle
DESCRIPTORS = 16  # of each direction, so that the rings have something to overlap
SAMPLE_EVERY = 4  # of that many descriptors, one has a block read back


def _rings(cfg: Config) -> tuple[list[int], list[int]]:
    """Rings for what comes in and for what goes out: even and odd ones."""
    rings = list(range(cfg.dma.rings))
    return rings[0::2], rings[1::2] or rings


class _Copies:
    """The copies of one workload: `rows` rows of `row_bytes` in blocks of P."""

    def __init__(self, cfg: Config, rows: int, row_bytes: int, seed: int, add: str | None):
        self.cfg = cfg
        self.add = add
        self.dtype = add or "uint8"
        self.width = row_bytes // ADDS.get(add or "", 1)  # elements of a row
        self.k = Kernel(cfg, "dma")
        self.rows, self.row_bytes = rows, row_bytes
        self.rng = np.random.default_rng(seed)
        self.blocks = -(-rows // cfg.partitions)
        self.reads, self.writes = _rings(cfg)
        self.moved = 0

    def random(self, name: str, rows: int) -> HbmView:
        """An input tensor of random bytes, or of normal values of the format in which it is added."""
        return random_rows(self.k, self.rng, name, (rows, self.width), self.add)

    def pattern(self) -> Tile:
        """A block of random rows in SBUF, the source of all writes."""
        p = min(self.cfg.partitions, self.rows)
        tile = self.k.sbuf("pattern", partitions=p, columns=self.width, dtype=self.dtype)
        self.k.dma(tile[:, :], self.random("pattern_rows", p)[:, :])
        return tile

    def pieces(self, capacity: int) -> list[tuple[int, int]]:
        """(first row, rows) of each descriptor: whole blocks, then what is left."""
        p = self.cfg.partitions
        each = max(1, min(capacity, self.blocks // DESCRIPTORS)) * p
        whole = self.rows - self.rows % p
        pieces = [(at, min(each, whole - at)) for at in range(0, whole, each)]
        return pieces + ([(whole, self.rows - whole)] if whole < self.rows else [])

    def read(self, free_bytes: int) -> None:
        """HBM to SBUF; what does not fit overwrites what came first."""
        p, width = self.cfg.partitions, self.row_bytes
        capacity = min(self.blocks, free_bytes // width)
        source = self.random("rows", self.rows)
        landing = self.k.sbuf("landing", partitions=p, columns=capacity * width, dtype="uint8")
        pieces = self.pieces(capacity)
        kept = [i for i in range(len(pieces)) if i % SAMPLE_EVERY == 0]
        samples = self.k.hbm("read_back", (len(kept) * p, width), "uint8")
        slot = 0
        for i, (first, rows) in enumerate(pieces):
            blocks = max(1, rows // p)
            if slot + blocks > capacity:
                slot = 0
            width_here = slice(slot * width, (slot + blocks) * width)
            rows_here = min(rows, p)
            target = landing[:rows_here, width_here].split(0, width)
            view = source[first : first + rows].split(0, rows_here).permute((1, 0, 2))
            self.k.dma(target, view, ring=self.reads[i % len(self.reads)])
            if i in kept:
                at = kept.index(i) * p
                self.k.dma(
                    samples[at : at + rows_here],
                    landing[:rows_here, slot * width : (slot + 1) * width],
                    ring=self.writes[i // SAMPLE_EVERY % len(self.writes)],
                )
            slot += blocks

    def accumulate(self, free_bytes: int) -> None:
        """HBM to SBUF: each ring adds all its rows to the same blocks, which begin as a block of random rows; the sums
        come back."""
        p, width = self.cfg.partitions, self.width
        room = -(-self.row_bytes // 16) * 16
        rings = self.reads[: free_bytes // room]  # each has a block at least
        source, base = self.random("rows", self.rows), self.random("base", min(p, self.rows))
        pieces = self.pieces(free_bytes // 16 // len(rings) * 16 // self.row_bytes)
        landings: dict[int, Tile] = {}
        for i, (first, rows) in enumerate(pieces):
            ring = rings[i % len(rings)]
            blocks, rows_here = max(1, rows // p), min(rows, p)
            if ring not in landings:
                name = f"sums{ring}"
                tile = self.k.sbuf(name, partitions=rows_here, columns=blocks * width, dtype=self.dtype)
                landings[ring] = tile
                begin = base[:rows_here, :].repeat(blocks).permute((1, 0, 2))
                self.k.dma(tile[:, :].split(0, width), begin, ring=ring)
            target = landings[ring][:rows_here, : blocks * width].split(0, width)
            view = source[first : first + rows].split(0, rows_here).permute((1, 0, 2))
            self.k.dma(target, view, ring=ring, add=self.add)
        for n, (ring, tile) in enumerate(landings.items()):
            sums = self.k.hbm(f"sums_of_ring{ring}", (tile.partitions, tile.columns), self.dtype)
            self.k.dma(sums[:, :], tile[:, :], ring=self.writes[n % len(self.writes)])

    def write(self, pattern: Tile) -> None:
        """SBUF to HBM: every block is the pattern."""
        p = self.cfg.partitions
        target = self.k.hbm("written", (self.rows, self.row_bytes), "uint8")
        for i, (first, rows) in enumerate(self.pieces(self.blocks)):
            rows_here = min(rows, p)
            source = pattern[:rows_here, :].repeat(max(1, rows // p))
            view = target[first : first + rows].split(0, rows_here).permute((1, 0, 2))
            self.k.dma(view, source, ring=self.writes[i % len(self.writes)])

    def within(self, pattern: Tile, free_bytes: int, *, across: bool) -> None:
        """SBUF to SBUF: the pattern to other columns of its partitions, or `across`, of the other half of the
        partitions, again and again. If it is added, to blocks that are the same block of random rows."""
        p, width = pattern.partitions, self.width
        half = p // 2
        if across and half < 1:
            raise KernelError(f"direction=sbuf needs at least 2 rows, not {self.rows}")
        used = 2 * half if across else p
        capacity = min(max(1, self.blocks), free_bytes // self.row_bytes)
        landing = self.k.sbuf("landing", partitions=used, columns=capacity * width, dtype=self.dtype)
        if self.add:
            base = self.random("base", used)
            self.k.dma(
                landing[:, :].split(0, width), base[:, :].repeat(capacity).permute((1, 0, 2)), ring=self.reads[0]
            )
        blocks = max(1, min(capacity, self.blocks // DESCRIPTORS))
        starts = range(0, capacity, blocks)
        samples = self.k.hbm("read_back", (len(starts) * used, width), self.dtype)
        ways = ((slice(0, half), slice(half, used)), (slice(half, used), slice(0, half)))
        for i, at in enumerate(starts):
            count = min(blocks, capacity - at)
            columns = slice(at * width, (at + count) * width)
            for source, target in ways if across else ((slice(0, p), slice(0, p)),):
                self.k.dma(
                    landing[target, columns].split(0, width),
                    pattern[source, :].repeat(count),
                    ring=self.reads[i % len(self.reads)],
                    add=self.add,
                )
            self.k.dma(
                samples[i * used : (i + 1) * used],
                landing[:, (at + count - 1) * width : (at + count) * width],
                ring=self.writes[i % len(self.writes)],
            )


def _check_sizes(cfg: Config, rows: int, row_bytes: int, direction: str) -> None:
    """KernelError if SBUF, HBM or the host does not hold this. Asked before any data are drawn."""
    partition = cfg.sbuf.partition_bytes
    inside = direction in ("sbuf", "inside")
    both = direction == "both" or inside  # the pattern and what lands, both in SBUF
    limit = partition // 32 * 16 if both else partition // 16 * 16
    if row_bytes > limit:
        raise KernelError(
            f"row_bytes must be at most {limit}, {'half a' if both else 'a'} partition of SBUF, with "
            f"direction={direction}, not {row_bytes}"
        )
    if inside:
        return
    size = rows * row_bytes * (2 if direction == "both" else 1)
    what = f"direction={direction} with rows={rows} and row_bytes={row_bytes} needs {size} bytes"
    if size > cfg.hbm.capacity_mib << 20:
        raise KernelError(f"{what} of HBM, more than hbm.capacity_mib = {cfg.hbm.capacity_mib} MiB")
    if size > HOST_BYTES_MAX:
        raise KernelError(f"{what} of host memory for its data; at most {HOST_BYTES_MAX} are allowed")


def _check_sum(direction: str, row_bytes: int, add: str) -> None:
    """KernelError unless rows of so many bytes can be added."""
    if add not in ADDS:
        raise KernelError(f"add must be one of {', '.join(ADDS)}, not {add!r}")
    if direction in ("write", "both"):
        raise KernelError(f"add={add} is done beside SBUF; direction={direction} writes to HBM, which adds nothing")
    if row_bytes % ADDS[add]:
        raise KernelError(f"row_bytes={row_bytes} is no multiple of the {ADDS[add]} bytes of an element of add={add}")


def dma_copy(
    cfg: Config,
    *,
    rows: int | None = None,
    row_bytes: int | None = None,
    direction: str = "read",
    add: str | None = None,
    classes: str | None = None,
    strict: int | None = None,
    descriptors: int | None = None,
    indices: str | None = None,
    seed: int = 0,
) -> Program:
    """A program that moves `rows` rows of `row_bytes` bytes in a direction of DIRECTIONS, or adds them in a format of
    ADDS to what is in SBUF.

    Without `rows`: as many as half of SBUF holds, at most 8 MiB (direction=sbuf: 512 KiB). Without `row_bytes`: 512, or
    as many as `classes` have room for. `classes`, `strict`: see dma_classes; `descriptors`: see dma_descriptors;
    `indices`: see dma_indices.
    Errors: KernelError.
    """
    if direction not in DIRECTIONS:
        raise KernelError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    if row_bytes is None:
        row_bytes = min(ROW_BYTES, longest_row(cfg, classes, direction)) if classes else ROW_BYTES
    if row_bytes < 1:
        raise KernelError(f"row_bytes must be at least 1, not {row_bytes}")
    if add is not None:
        _check_sum(direction, row_bytes, add)
    if descriptors is not None:
        if rows is not None or add is not None or classes is not None or indices is not None:
            raise KernelError("descriptors are of a row each: they go with row_bytes and direction only")
        return dma_descriptors(cfg, descriptors=descriptors, row_bytes=row_bytes, direction=direction, seed=seed)
    if classes is not None:
        if indices is not None:
            raise KernelError("indices go with rows, row_bytes and direction only")
        if of_classes(cfg, classes, strict) != cfg:
            raise KernelError(f"classes={classes} needs a configuration of its own: see of_classes")
        return dma_classes(
            cfg, classes=classes, rows=rows, row_bytes=row_bytes, direction=direction, add=add, seed=seed
        )
    if rows is None:
        default = DEFAULT_ACROSS_BYTES if direction == "sbuf" else DEFAULT_BYTES
        per_partition = min(default // cfg.partitions, cfg.sbuf.partition_bytes // 2)
        rows = max(1, per_partition // row_bytes) * cfg.partitions
        if indices is not None:
            rows = min(rows, max(1, most_blocks(cfg, row_bytes, indices)) * cfg.partitions)
    if rows < 1:
        raise KernelError(f"rows must be at least 1, not {rows}")
    _check_sizes(cfg, rows, row_bytes, direction)
    if indices is not None:
        if add is not None:
            raise KernelError("indices go with rows, row_bytes and direction only")
        return dma_indices(cfg, indices=indices, rows=rows, row_bytes=row_bytes, direction=direction, seed=seed)
    copies = _Copies(cfg, rows, row_bytes, seed, add)
    pattern = None if direction == "read" else copies.pattern()
    # Tiles start at multiples of 16 bytes.
    free_bytes = copies.k.sbuf_free() // 16 * 16
    notes = [f"row i of {rows} lies on partition i mod {cfg.partitions}, {row_bytes} bytes each"]
    if pattern is None and add:
        copies.accumulate(free_bytes)
        notes.append(
            f"each ring adds all its rows, as {add}, to the same blocks of random rows in SBUF; the sums go back to HBM"
        )
    elif pattern is None or direction == "both":
        copies.read(free_bytes)
        notes.append("samples of what was read go back to HBM, where they are compared")
    if pattern is not None and direction in ("write", "both"):
        copies.write(pattern)
        notes.append("every block that is written is the same block of random rows, read first")
    if pattern is not None and direction in ("sbuf", "inside"):
        copies.within(pattern, free_bytes, across=direction == "sbuf")
        where = "each half of the partitions" if direction == "sbuf" else "each partition"
        whose = "the other half's" if direction == "sbuf" else "its own"
        notes.append(f"{where} receives {whose} rows; samples go back to HBM")
        if add:
            notes.append(f"they are added, as {add}, to blocks that are the same block of random rows")
    return copies.k.program(notes=notes)
