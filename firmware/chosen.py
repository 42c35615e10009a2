"""Copies whose rows indices choose: gather from a table, scatter to one."""

from dataclasses import dataclass

from firmware.copies import ROW_BYTES_MAX
from firmware.engines.base import name_of, need
from firmware.numbers import element_bytes
from firmware.program import Choice
from firmware.views import CopyView, HbmView, TileView
from rtl.contract.config import Config
from rtl.contract.descriptor import Indirect
from rtl.contract.memmap import Space

__all__ = ["By", "chosen_rows"]

INDEX_BYTES = 4
TABLE_ROWS_MAX = (1 << 28) - 1


@dataclass(frozen=True, slots=True)
class By:
    """`indices` choose the rows of side `table` of a copy; `skip`: one that is none of its rows leaves its row out."""

    table: Indirect
    indices: TileView
    skip: bool


def chosen_rows(
    cfg: Config, dst: CopyView, src: CopyView, by: By, *, adds: bool
) -> tuple[int, tuple[tuple[int, int, int], ...], Choice]:
    """Bytes of a row, the two dimensions of rows, innermost first, and where the indices lie."""
    need(by.table != Indirect.NONE, "indices choose rows of a side: see gather and scatter")
    need(cfg.dma.indirect, f"configuration {cfg.name} takes no indices: dma.indirect is false")
    table, plain = (src, dst) if by.table == Indirect.SOURCE else (dst, src)
    step, table_rows, row_bytes = _table(table)
    (outer, outer_step), (inner, inner_step) = _rows(plain, row_bytes, table)
    indices = by.indices
    need(
        not isinstance(indices, HbmView) and indices.tile.space == Space.SBUF and indices.core == plain.core,
        f"indices lie in SBUF of the core that copies; {name_of(indices)} does not",
    )
    need(indices.dtype in ("int32", "uint32"), f"indices are int32 or uint32; {name_of(indices)} is {indices.dtype}")
    down = indices.partitions > 1
    axes = [axis for axis in indices.axes_bytes()[1:] if axis[0] > 1]
    need(
        not axes
        or (axes[-1][1] == INDEX_BYTES and all(a[1] == b[0] * b[1] for a, b in zip(axes, axes[1:], strict=False))),
        f"indices of a partition lie one behind the other; those of {name_of(indices)} do not",
    )
    along = indices.elements
    need(
        (indices.partitions, along) == (outer, inner) if down else along == outer * inner,
        f"{name_of(indices)} has {indices.partitions} x {along} indices; there are {outer} x {inner} rows to choose",
    )
    dims = [(inner, inner_step), (outer, outer_step)]
    if down or not isinstance(plain, HbmView):
        dims.reverse()  # partitions innermost: so all movers soon have a row
    steps = zip(dims, (step, 0), strict=True)  # the table's: an index takes the place of dimension 0
    ordered = [(n, own, at) if by.table == Indirect.SOURCE else (n, at, own) for (n, at), own in steps]
    choice = Choice(table=by.table, rows=table_rows, offset=indices.first_byte, down=down, skips=by.skip)
    written = dims if by.table == Indirect.SOURCE else [(table_rows, step)]
    need(
        adds or all(count == 1 or at for count, at in written),
        f"{name_of(dst)} repeats elements, which only a source, or a sum, may do",
    )
    return row_bytes, tuple(ordered), choice


def _table(view: CopyView) -> tuple[int, int, int]:
    """Bytes from a row to the next, rows, and bytes of each."""
    axes = view.axes_bytes()
    if not isinstance(view, HbmView) and axes[0][0] == 1 and len(axes) > 2:
        axes = axes[1:]  # rows behind each other in a partition
    need(len(axes) >= 2, f"a table has rows, and elements of each; {name_of(view)} is {view.shape}")
    (rows, step), *row = axes
    size = element_bytes(view.dtype)
    for count, at in reversed(row):
        need(count == 1 or at == size, f"a row of a table is contiguous; those of {name_of(view)} are not")
        size *= count
    need(size <= ROW_BYTES_MAX, f"a row of {name_of(view)} has {size} bytes; {ROW_BYTES_MAX} are the most")
    need(rows <= TABLE_ROWS_MAX, f"table {name_of(view)} has {rows} rows; {TABLE_ROWS_MAX} are the most")
    return step, rows, size


def _rows(view: CopyView, row_bytes: int, table: CopyView) -> list[tuple[int, int]]:
    """(count, bytes to the next) of the two axes of rows, outermost first; what is missing counts one."""
    axes = list(view.axes_bytes())
    size = element_bytes(view.dtype)
    while axes and size < row_bytes and (axes[-1][1] == size or axes[-1][0] == 1):
        size *= axes.pop()[0]
    need(
        size == row_bytes,
        f"{name_of(view)} is {view.shape}; the rows of {name_of(table)} have {row_bytes} contiguous bytes",
    )
    axes = axes if len(axes) <= 2 else [axis for axis in axes if axis[0] > 1]
    need(len(axes) <= 2, f"{name_of(view)} has {len(axes)} axes of rows; indices choose those of two")
    return (axes + [(1, 0)] * 2)[:2]
