"""Axes of an array and what indices make of them: slices, numbers, and index arrays that are affine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index as whole
from typing import Any

import numpy as np

from firmware.views import KernelError

__all__ = ["Axis", "Layout", "affine", "indexed", "refined", "reshaped"]


@dataclass(frozen=True, slots=True)
class Axis:
    """`count` elements, each `p` partitions and `f` elements behind the one before. `par`: it is that of partitions."""

    count: int
    p: int
    f: int
    par: bool = False


@dataclass(frozen=True, slots=True)
class Reach:
    """What index arrays reach along an axis of `size`: base + sum of steps, one a result axis."""

    base: int
    steps: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Layout:
    """First partition, first element, axes. `reaches` is checked when the array is used: a mask may cut it first."""

    p: int
    f: int
    axes: tuple[Axis, ...]
    reaches: tuple[Reach, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.count for axis in self.axes)

    def check(self, name: str) -> None:
        """KernelError if index arrays leave the array."""
        for reach in self.reaches:
            ends = [step * (axis.count - 1) for step, axis in zip(reach.steps, self.axes, strict=True)]
            low, high = reach.base + sum(min(e, 0) for e in ends), reach.base + sum(max(e, 0) for e in ends)
            if low < 0 or high >= reach.size:
                raise KernelError(
                    f"{name} has {reach.size} elements along an axis that is indexed from {low} to {high}; a mask cuts "
                    "what is outside"
                )

    def cut(self, counts: Sequence[int]) -> "Layout":
        """The first `counts` elements of each axis."""
        return replace(self, axes=tuple(replace(a, count=n) for a, n in zip(self.axes, counts, strict=True)))


def affine(array: np.ndarray) -> tuple[int, tuple[int, ...]]:
    """(base, steps) of an index array that is base + sum of steps times index. KernelError if it is not."""
    steps = []
    base = int(array.flat[0])
    model = np.full(array.shape, base, np.int64)
    for axis, count in enumerate(array.shape):
        at = [0] * array.ndim
        at[axis] = 1
        step = int(array[tuple(at)]) - base if count > 1 else 0
        steps.append(step)
        model = model + step * np.arange(count).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    if not np.array_equal(model, array):
        raise KernelError("an index array must be affine: a start and a constant step along each of its axes")
    return base, tuple(steps)


def _keys(key: Any, count: int, name: str) -> list[Any]:
    keys = list(key) if isinstance(key, tuple) else [key]
    at = [i for i, one in enumerate(keys) if one is Ellipsis]
    if at:
        keys[at[0] : at[0] + 1] = [slice(None)] * (count - len(keys) + 1)
    if len(keys) > count:
        raise KernelError(f"{name} has {count} axes, and {len(keys)} indices are given")
    return keys + [slice(None)] * (count - len(keys))


def indexed(layout: Layout, key: Any, name: str) -> Layout:
    """What `array[key]` is. KernelError for what lies outside or is no index."""
    layout.check(name)
    keys = _keys(key, len(layout.axes), name)
    arrays = [np.asarray(k) for k in keys if isinstance(k, np.ndarray) and k.ndim]
    if any(a.dtype.kind not in "iu" for a in arrays):
        raise KernelError(f"{name} is indexed with an array of {arrays[0].dtype}; index arrays hold whole numbers")
    try:
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise KernelError(f"{name} is indexed with arrays of shapes {shapes}, which do not go together") from None
    p, f, axes, reaches, place = layout.p, layout.f, [], [], None
    steps_p, steps_f, par = [0] * len(shape), [0] * len(shape), -1
    for one, axis in zip(keys, layout.axes, strict=True):
        if isinstance(one, np.ndarray) and one.ndim:
            if place is None:
                place = len(axes)
            base, steps = affine(one)
            steps = (0,) * (len(shape) - len(steps)) + steps
            reaches.append((Reach(base, steps, axis.count), place))
            p, f = p + base * axis.p, f + base * axis.f
            for i, step in enumerate(steps):
                steps_p[i] += step * axis.p
                steps_f[i] += step * axis.f
                if axis.par and shape[i] > 1 and step:
                    par = i
            if axis.par and par < 0:
                par = 0
        elif isinstance(one, slice):
            start, count, step = _slice(one, axis.count, name)
            p, f = p + start * axis.p, f + start * axis.f
            axes.append(Axis(count, axis.p * step, axis.f * step, axis.par))
        else:
            at = _number(one, axis.count, name)
            p, f = p + at * axis.p, f + at * axis.f
    if place is not None:
        axes[place:place] = [Axis(n, steps_p[i], steps_f[i], i == par) for i, n in enumerate(shape)]
    before = [(0,) * at for _, at in reaches]
    found = tuple(
        Reach(r.base, b + r.steps + (0,) * (len(axes) - len(b) - len(r.steps)), r.size)
        for (r, _), b in zip(reaches, before, strict=True)
    )
    return Layout(p, f, tuple(axes), found)


def _slice(one: slice, size: int, name: str) -> tuple[int, int, int]:
    try:
        start = 0 if one.start is None else whole(one.start)
        stop = size if one.stop is None else whole(one.stop)
        step = 1 if one.step is None else whole(one.step)
    except TypeError:
        raise KernelError(f"{name} is sliced with {one}; an index is a whole number when the kernel is built") from None
    start, stop = start + size * (start < 0), stop + size * (stop < 0)
    if step < 1 or not 0 <= start < stop <= size:
        raise KernelError(f"{name} has {size} elements along an axis; the slice {start}:{stop}:{step} is not inside")
    return start, -(-(stop - start) // step), step


def _number(one: Any, size: int, name: str) -> int:
    try:
        at = whole(one)
    except TypeError:
        raise KernelError(
            f"{name} is indexed with {one!r}; an index is a whole number when the kernel is built"
        ) from None
    if not -size <= at < size:
        raise KernelError(f"{name} has {size} elements along an axis; there is no element {at}")
    return at % size


def refined(a: Sequence[Axis], b: Sequence[Axis]) -> tuple[list[Axis], list[Axis]] | None:
    """The same two lists with equal counts, by splitting axes; None if they do not match."""
    left, right = [x for x in a if x.count > 1], [x for x in b if x.count > 1]
    out: tuple[list[Axis], list[Axis]] = ([], [])
    while left and right:
        x, y = left.pop(), right.pop()
        n = min(x.count, y.count)
        for one, rest, made in ((x, left, out[0]), (y, right, out[1])):
            if one.count % n:
                return None
            made.insert(0, replace(one, count=n))
            if one.count > n:
                rest.append(Axis(one.count // n, one.p * n, one.f * n, one.par))
    return None if left or right else out


def reshaped(axes: Sequence[Axis], shape: Sequence[int], name: str) -> tuple[Axis, ...]:
    """Axes of another shape with the same elements in order. KernelError if steps do not allow it."""
    merged: list[Axis] = []
    for axis in axes:
        if axis.count == 1:
            continue
        last = merged[-1] if merged else None
        if last and (last.p, last.f) == (axis.p * axis.count, axis.f * axis.count) and last.par == axis.par:
            merged[-1] = replace(axis, count=last.count * axis.count)
        else:
            merged.append(axis)
    pieces = refined(merged, [Axis(n, 0, 0) for n in shape])
    wanted = [n for n in shape if n > 1]
    if pieces is None or [x.count for x in pieces[1]] != wanted:
        old = tuple(axis.count for axis in axes)
        raise KernelError(f"{name} of shape {old} cannot be seen as {tuple(shape)} where it lies")
    left, made = list(pieces[0]), []
    had_par = any(axis.par for axis in axes)
    for n in shape:
        made.append(left.pop(0) if n > 1 else Axis(1, 0, 0))
    if had_par and not any(axis.par for axis in made) and made:
        made[0] = replace(made[0], par=True)
    return tuple(made)
