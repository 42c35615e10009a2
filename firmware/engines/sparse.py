"""Sparse operands in the kernel language: their pattern, their tags, the rows of a bus."""

from firmware.builder import Builder
from firmware.engines.base import access, need
from firmware.hazards import Access
from firmware.numbers import split_format
from firmware.sparsity import moving_format
from firmware.views import KernelError, TileView
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.kinds import TAG_COLUMNS, tag_elements
from rtl.contract.memmap import Space
from rtl.contract.sparsity import BUS_ROWS, SPARSE_FORMATS, Sparsity

__all__ = ["check_moving", "check_stationary", "take_tags"]


def _whole_buses(view: TileView, what: str, pattern: Sparsity) -> None:
    rows = f"{what} {view.tile.name} takes {view.partitions} partitions from {view.start}"
    need(view.start % BUS_ROWS == 0, f"{rows}; sparse rows begin at a multiple of {BUS_ROWS}")
    need(
        view.partitions % pattern.kept == 0,
        f"{rows}; with sparsity {pattern.name} {pattern.kept} rows share a bus, which cannot be cut",
    )


def check_stationary(view: TileView, pattern: Sparsity) -> None:
    """KernelError unless a view can hold the kept numbers of a pattern."""
    need(
        view.dtype in SPARSE_FORMATS,
        f"stationary operand {view.tile.name} is {view.dtype}; with sparsity it must be {' or '.join(SPARSE_FORMATS)}",
    )
    _whole_buses(view, "stationary operand", pattern)


def check_moving(moving: TileView, stationary: TileView, pattern: Sparsity) -> None:
    """KernelError unless a moving operand has the numbers that the weights of a pattern choose from."""
    base = split_format(moving.dtype)[0]
    fitting = [moving_format(name, pattern) for name in SPARSE_FORMATS]
    need(
        base in SPARSE_FORMATS and moving.dtype in fitting,
        f"moving operand {moving.tile.name} is {moving.dtype}; {stationary.tile.name} has sparsity {pattern.name}, so "
        f"{pattern.ratio} numbers lie side by side: {' or '.join(fitting)}",
    )
    _whole_buses(moving, "moving operand", pattern)


def take_tags(
    k: Builder, view: TileView, tags: TileView | None, pattern: Sparsity
) -> tuple[AccessPattern, tuple[Access, ...]]:
    """src1 of a load of sparse operand `view`, and what it reads. Errors: KernelError, one sentence."""
    if tags is None:
        raise KernelError(f"stationary operand {view.tile.name} has sparsity {pattern.name} and needs tags")
    name = tags.tile.name
    need(tags.tile.space == Space.SBUF, f"tags {name} lie in PSUM; the array reads from SBUF")
    need(tags.dtype == "uint16", f"tags {name} of {view.tile.name} are {tags.dtype}; they must be uint16")
    need(
        (tags.start, tags.partitions) == (view.start, view.partitions),
        f"tags {name} are on {tags.partitions} partitions from {tags.start}, {view.tile.name} on {view.partitions} "
        f"from {view.start}; they must be the same",
    )
    wanted = tag_elements(view.elements)
    need(
        tags.elements == wanted,
        f"tags {name} have {tags.elements} elements a partition; {view.elements} columns need {wanted}, {TAG_COLUMNS} "
        f"columns in each",
    )
    return k.pattern(tags, "tags of the stationary operand"), (access(tags, False),)
