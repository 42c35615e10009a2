"""What goes to SBUF beside operands: scales to where the array looks for them, tags of sparse ones."""

from collections.abc import Sequence

from firmware.kernel import HbmView, Kernel, TileView
from firmware.views import BlockView
from rtl.contract.isa import Queue

__all__ = ["copy_beside", "copy_scales"]

_RING = 2


def copy_beside(k: Kernel, dst: TileView | BlockView, src: HbmView) -> None:
    """A copy that is small beside those of operands: on a ring of its own if there are three, for a ring has few under
    way, and data would wait behind scales."""
    own = k.cfg.dma.rings > _RING
    k.dma(dst, src, ring=_RING if own else None, queue=Queue.SYNC if own else None)


def _alike(views: Sequence[TileView]) -> int:
    """How many from the first on are equal parts of blocks that follow each other at one distance."""
    count = 1
    while count < len(views) and (
        views[count].partitions == views[0].partitions
        and views[count].start - views[count - 1].start == views[1].start - views[0].start
    ):
        count += 1
    return count


def copy_scales(k: Kernel, views: Sequence[TileView], source: HbmView) -> None:
    """Copy `source`, a row an MX block, to the parts that scale_views gave; parts of one size are one copy."""
    row = 0
    while views:
        first, count = views[0], _alike(views)
        rows = source[row : row + count * first.partitions]
        if count == 1:
            copy_beside(k, first, rows)
        else:
            copy_beside(k, BlockView(first, count, views[1].start - first.start), rows.split(0, first.partitions))
        row += count * first.partitions
        views = views[count:]
