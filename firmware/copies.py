"""Copies by DMA: contiguous rows of two views of one shape, and places in memory."""

from firmware.engines.base import name_of, need
from firmware.numbers import element_bytes
from firmware.program import Place
from firmware.views import CopyView, HbmView
from rtl.contract.config import Config
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space

__all__ = ["ROW_BYTES_MAX", "place", "rows"]

ROW_BYTES_MAX = 1 << 18


def rows(
    cfg: Config, dst: CopyView, src: CopyView, *, adds: bool = False
) -> tuple[int, tuple[tuple[int, int, int], ...]]:
    """Rows of contiguous bytes and up to three dimensions of them, innermost first. `adds`: `dst` may repeat elements,
    and what is added to one of them stays in the order of `src`."""
    d, s = dst.axes_bytes(), src.axes_bytes()
    counts = [n for n, _ in d if n > 1]
    need(
        counts == [n for n, _ in s if n > 1],
        f"DMA needs the same shape on both sides: {name_of(dst)} is {dst.shape}, {name_of(src)} is {src.shape}",
    )
    dst_steps = [step for n, step in d if n > 1]
    src_steps = [step for n, step in s if n > 1]
    need(adds or 0 not in dst_steps, f"{name_of(dst)} repeats elements, which only a source, or a sum, may do")
    row = element_bytes(dst.dtype)
    sbuf_sides = not isinstance(src, HbmView), not isinstance(dst, HbmView)
    merged: list[tuple[int, int, int]] = []  # innermost first
    for count, a, b in zip(reversed(counts), reversed(src_steps), reversed(dst_steps), strict=True):
        if not merged and a == row and b == row and row * count <= ROW_BYTES_MAX:
            row *= count
        elif merged and a == merged[-1][0] * merged[-1][1] and b == merged[-1][0] * merged[-1][2]:
            merged[-1] = (merged[-1][0] * count, merged[-1][1], merged[-1][2])
        else:
            merged.append((count, a, b))
    need(
        len(merged) <= 3,
        f"a copy from {name_of(src)} to {name_of(dst)} needs {len(merged)} dimensions of rows; a descriptor has 3",
    )
    # Partitions innermost, those of different movers first: so all movers soon have a row.
    merged.sort(key=lambda dim: -_partitions(dim, sbuf_sides) if dim[2] else 0)
    lanes = cfg.partitions // cfg.dma.engines
    if merged and len(merged) < 3 and merged[0][2] and _partitions(merged[0], sbuf_sides):
        count, a, b = merged[0]
        if count % lanes == 0 and count > lanes > 1:
            merged[:1] = [(count // lanes, a * lanes, b * lanes), (lanes, a, b)]
    # Long rows in pieces, the first piece of all rows first: else all of them wait behind the mover of one row.
    piece = cfg.dma.slice_bytes
    if merged and len(merged) < 3 and row % piece == 0 and row > piece and _partitions(merged[0], sbuf_sides):
        beats = (_on_beats(cfg, view, [dim[1 + n] for dim in merged]) for n, view in enumerate((src, dst)))
        if dst.core == src.core and all(beats):  # packets are cut otherwise
            merged.append((row // piece, piece, piece))
            row = piece
    return row, tuple(merged)


def _on_beats(cfg: Config, view: CopyView, steps: list[int]) -> bool:
    """All rows of a view begin with a beat of HBM, if they are there: no piece of them takes a beat twice."""
    beat = cfg.hbm.port_bytes
    return not isinstance(view, HbmView) or not any(at % beat for at in (place(view).offset, *steps))


def _partitions(dim: tuple[int, int, int], sbuf: tuple[bool, bool]) -> int:
    """How many partitions a dimension (count, source step, destination step) goes on at a time."""
    return max(step // PARTITION_STRIDE_BYTES if side else 0 for step, side in zip(dim[1:], sbuf, strict=True))


def place(view: CopyView) -> Place:
    """First byte of a view."""
    if isinstance(view, HbmView):
        return Place(Space.HBM, view.offset * element_bytes(view.dtype), view.tensor.name, view.core)
    return Place(Space.SBUF, view.first_byte, core=view.core)
