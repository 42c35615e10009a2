"""Scales of MX operands: which partitions they take, and the pattern that names them."""

from dataclasses import dataclass, replace

from firmware.builder import Builder
from firmware.engines.base import access, need
from firmware.hazards import Access
from firmware.views import KernelError, TileView
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.isa import block
from rtl.contract.kinds import SCALE_FORMATS, SCALE_ROWS, Kind, scale_partition, scale_slots
from rtl.contract.memmap import Space

__all__ = ["Scales", "scale_views", "take_scales"]


@dataclass(frozen=True, slots=True)
class Scales:
    """src1 of an instruction of the array, and what it reads."""

    pattern: AccessPattern
    accesses: tuple[Access, ...]


def scale_views(tile: TileView, kind: Kind, partitions: int, slot: int, start: int, count: int) -> list[TileView]:
    """The parts of `tile`, which begins with the block of partition `start`, that hold the scales of `count`
    partitions from there, a view for each block of Q partitions; row i of all of them is MX block i."""
    size, rows = block(partitions), SCALE_ROWS[kind]
    views: list[TileView] = []
    row = start
    while row < start + count:
        end = min(start + count, row // size * size + size)
        first = scale_partition(kind, partitions, slot, row) - tile.start
        views.append(tile[first : first + (end - row) // rows])
        row = end
    return views


def take_scales(k: Builder, view: TileView, kind: Kind, scales: TileView | None, slot: int, what: str) -> Scales:
    """What an instruction says of the scales of operand `view`. Errors: KernelError, one sentence."""
    partitions = k.cfg.partitions
    size, rows = block(partitions), SCALE_ROWS[kind]
    if scales is None:
        raise KernelError(f"{what} {view.tile.name} is {view.dtype} and needs scales")
    name = scales.tile.name
    need(scales.tile.space == Space.SBUF, f"scales {name} lie in PSUM; the array reads from SBUF")
    need(
        scales.dtype == SCALE_FORMATS[kind],
        f"scales {name} of {view.tile.name} are {scales.dtype}; they must be e8m0, or e4m3fn with tensor.nvfp4",
    )
    need(
        0 <= slot < scale_slots(kind),
        f"scales {name} are to be in slot {slot}; there are {scale_slots(kind)} in {size} partitions",
    )
    need(
        scales.elements == view.elements,
        f"scales {name} have {scales.elements} columns, {view.tile.name} has {view.elements}; they must be equal",
    )
    first = view.start // size * size
    last = scale_partition(kind, partitions, slot, view.start + view.partitions - 1)
    need(
        scales.start == first and scales.start + scales.partitions > last,
        f"scales {name} are on partitions {scales.start} to {scales.start + scales.partitions - 1}; those of "
        f"{view.tile.name} in slot {slot} need {first} to {last}",
    )
    begin = first + slot * (size // rows)
    used = replace(scales, start=begin, partitions=size // rows)
    parts = scale_views(scales, kind, partitions, slot, view.start, view.partitions)
    return Scales(k.free_pattern(used, f"scales of the {what}"), tuple(access(part, False) for part in parts))
