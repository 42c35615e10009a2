"""Views by access patterns, `array.ap(pattern, offset)`: [step, count] pairs of elements, outermost first."""

from collections.abc import Sequence
from math import prod
from typing import Any

from firmware.nki.axes import Axis, Layout
from firmware.views import KernelError

__all__ = ["patterned"]


def patterned(
    layout: Layout, pattern: Any, offset: int, on_chip: bool, widths_bytes: tuple[int, int], name: str
) -> Layout:
    """What a pattern reads of an array whose elements lie side by side. `widths_bytes`: of its elements, and of those
    that the pattern counts. On the chip the first pair runs over partitions, its step in elements of a whole
    partition. KernelError for what lies outside."""
    layout.check(name)
    old, new = widths_bytes
    axes = [axis for axis in layout.axes if axis.count > 1 and not axis.par]
    row = prod(axis.count for axis in axes)
    steps = [prod(axis.count for axis in axes[i + 1 :]) for i in range(len(axes))]
    if [axis.f for axis in axes] != steps or (on_chip and not layout.axes[0].par):
        raise KernelError(f"{name}.ap takes an array whose elements lie side by side, and no part or order of one")
    if row * old % new or layout.f * old % new:
        raise KernelError(f"{name} has {row * old} bytes in a row, no whole number of elements of {new} bytes")
    columns, start = row * old // new, layout.f * old // new
    pairs = _pairs(pattern, name)
    if not on_chip:
        _inside(offset, pairs, columns, name)
        return Layout(0, start + offset, tuple(Axis(n, 0, step) for step, n in pairs))
    (step, count), rest = pairs[0], pairs[1:]
    partition, column = divmod(offset, columns)
    if count > 1 and step % columns:
        raise KernelError(
            f"the first pair of {name}.ap runs over partitions: its step is a multiple of {columns}, not {step}"
        )
    par = layout.axes[0]
    lanes = [(step // columns, count)] if count > 1 else []
    _inside(partition, lanes, par.count, name)
    _inside(column, rest, columns, name)
    first = Axis(count, step // columns * par.p if count > 1 else 1, 0, True)
    return Layout(layout.p + partition * par.p, start + column, (first, *(Axis(n, 0, s) for s, n in rest)))


def _pairs(pattern: Any, name: str) -> list[tuple[int, int]]:
    try:
        pairs = [(int(step), int(count)) for step, count in pattern]
    except (TypeError, ValueError):
        pairs = []
    if not pairs or any(count < 1 or step < 0 for step, count in pairs):
        raise KernelError(f"the pattern of {name}.ap is [[step, count], ...] from 0 and 1 on, not {pattern!r}")
    return pairs


def _inside(first: int, pairs: Sequence[tuple[int, int]], size: int, name: str) -> None:
    last = first + sum(step * (count - 1) for step, count in pairs)
    if first < 0 or last >= size:
        raise KernelError(f"{name}.ap reaches from {first} to {last} along an axis of {size}")
