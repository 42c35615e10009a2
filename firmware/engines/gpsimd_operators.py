"""Operators of the programmable engine: k.gpsimd.topk and the like, entries of the image in firmware/gpsimd/lib."""

from collections.abc import Sequence
from enum import IntEnum
from math import prod

import numpy as np

from firmware.arguments import checked
from firmware.engines.base import need
from firmware.engines.gpsimd import GpsimdEngine
from firmware.gpsimd.library import library
from firmware.views import TileView
from rtl.contract.gpsimd_operators import ARGUMENTS, BINS_MAX, K_MAX, ROUTED_MAX, Gather, Integer, Reduction, Relation

__all__ = ["GpsimdOperators"]

_INTEGERS, _WORDS = ("int32", "uint32"), ("fp32", "int32", "uint32")
_ORDERED = ("fp32", "int32")
_SIGNED = (Integer.MAX, Integer.MIN, Integer.SHIFT_RIGHT_SIGNED)
_MASK = (1 << 32) - 1
_LONGEST = (1 << 24) - 1
"""GPSIMD cycles; every operator ends, however many elements it has."""


@checked
class GpsimdOperators(GpsimdEngine):
    """The programmable engine with the library of operators. Operands are views of SBUF with 32-bit elements and one
    free axis; all cores take part, each with its own partitions."""

    def iota(self, dst: TileView, *, offset: int = 0, multiplier: int = 0, steps: Sequence[int] | None = None) -> None:
        """dst[p, i...] = offset + p multiplier + sum of i steps, modulo 2^32, up to four axes; steps as the axes of the
        view, by default those that count its elements."""
        of = self._operand("iota", "dst", dst, _INTEGERS, axes=4)
        args = _steps("iota", of, steps) | {"offset": offset & _MASK, "multiplier": multiplier & _MASK}
        self._operate("iota", {"dst": of}, writes=[of], values=args)

    def affine_select(
        self,
        dst: TileView,
        x: TileView,
        *,
        relation: str = "ge",
        offset: int = 0,
        multiplier: int = 0,
        steps: Sequence[int] | None = None,
        fill: float = 0,
    ) -> None:
        """dst = x where offset + p multiplier + sum of i steps compares with 0, else fill; up to three axes."""
        name = "affine_select"
        to, of = self._operand(name, "dst", dst, _WORDS, axes=3), self._operand(name, "x", x, _WORDS, axes=3)
        _same(name, "dst", to, "x", of)
        _in_place(name, to, of)
        need(-(1 << 23) <= offset < 1 << 23, f"{name} has an offset of 24 bits with sign, and {offset} is none")
        need(-(1 << 15) <= multiplier < 1 << 15, f"{name} has a multiplier of 16 bits with sign, {multiplier} is none")
        args = _steps(name, to, steps) | {"offset": offset, "multiplier": multiplier}
        args |= {"relation": _choice(name, "relation", relation, Relation), "fill": _bits(name, fill, to.dtype)}
        self._operate(name, {"src0": of, "dst": to}, reads=[of], writes=[to], values=args)

    def gather(self, dst: TileView, x: TileView, index: TileView, *, mode: str = "columns", fill: float = 0) -> None:
        """dst[p, i] = x[p, index[p, i]]; mode "shared": index i of a core, element i / L of its partition i mod L, is
        that of all its partitions; mode "partitions": x[index[p, i], i]. An index outside gives fill."""
        name = "gather"
        to, of = self._operand(name, "dst", dst, _WORDS), self._operand(name, "x", x, _WORDS)
        at = self._operand(name, "index", index, _INTEGERS)
        kind = _choice(name, "mode", mode, Gather)
        need(to.dtype == of.dtype, f"{name} takes dst of x's format, {of.dtype}, not {to.dtype}")
        _same_partitions(name, "index", at, "dst", to)
        if kind == Gather.PARTITIONS:
            need(
                to.elements == of.elements,
                f"{name} by partitions takes dst of as many columns as x, {of.elements}, not {to.elements}",
            )
        else:
            _same_partitions(name, "x", of, "dst", to)
        if kind == Gather.SHARED:
            self._need_indices(to, at)
        else:
            need(
                to.elements == at.elements,
                f"{name} takes an index for each element of dst, {to.elements} a partition, not {at.elements}",
            )
        _apart(name, {"dst": to}, {"x": of, "index": at})
        args = {"mode": kind, "fill": _bits(name, fill, to.dtype)}
        self._operate(name, {"src0": of, "src1": at, "dst": to}, reads=[of, at], writes=[to], values=args)

    def topk(self, values: TileView, indices: TileView, x: TileView) -> None:
        """The k largest elements of each partition, the largest first, and their columns; k is how many columns values
        and indices have. Of equal ones the lower column comes first."""
        name = "topk"
        of, to = self._operand(name, "x", x, _ORDERED), self._operand(name, "values", values, _ORDERED)
        at = self._operand(name, "indices", indices, _INTEGERS)
        need(to.dtype == of.dtype, f"{name} takes values of x's format, {of.dtype}, not {to.dtype}")
        _same(name, "indices", at, "values", to)
        _same_partitions(name, "values", to, "x", of)
        k = to.elements
        need(k <= min(K_MAX, of.elements), f"{name} gives at most {K_MAX} of {of.elements} elements, not {k}")
        _apart(name, {"values": to, "indices": at}, {"x": of})
        self._operate(name, {"src0": of, "src1": at, "dst": to}, reads=[of], writes=[to, at], values={"k": k})

    def nonzero(self, indices: TileView, count: TileView, x: TileView) -> None:
        """Columns of the elements that are not 0, ascending, then -1; count is how many there are, even if indices has
        fewer columns."""
        name = "nonzero"
        of = self._operand(name, "x", x, _WORDS)
        to, number = (self._operand(name, n, v, ("int32",)) for n, v in (("indices", indices), ("count", count)))
        need(number.elements == 1, f"{name} has one count a partition, not {number.elements}")
        for what, view in (("indices", to), ("count", number)):
            _same_partitions(name, what, view, "x", of)
        _apart(name, {"indices": to, "count": number}, {"x": of})
        self._operate(name, {"src0": of, "src1": number, "dst": to}, reads=[of], writes=[to, number])

    def partition_reduce(self, dst: TileView, x: TileView, op: str = "sum") -> None:
        """dst, one partition anywhere, = sum, max or min over the partitions of x, of 32-bit integers with sign."""
        name = "partition_reduce"
        to, of = self._operand(name, "dst", dst, ("int32",)), self._operand(name, "x", x, ("int32",))
        _one_partition(name, "dst", to)
        need(to.elements == of.elements, f"{name} takes dst of x's {of.elements} columns, not {to.elements}")
        _apart(name, {"dst": to}, {"x": of})
        values = {"op": _choice(name, "op", op, Reduction)}
        self._operate(name, {"src0": of, "dst": to}, reads=[of], writes=[to], values=values)

    def partition_broadcast(self, dst: TileView, x: TileView) -> None:
        """All partitions of dst = x, one partition anywhere."""
        name = "partition_broadcast"
        to, of = self._operand(name, "dst", dst, _WORDS), self._operand(name, "x", x, _WORDS)
        _one_partition(name, "x", of)
        need(to.dtype == of.dtype, f"{name} takes dst of x's format, {of.dtype}, not {to.dtype}")
        need(to.elements == of.elements, f"{name} takes dst of x's {of.elements} columns, not {to.elements}")
        _apart(name, {"dst": to}, {"x": of})
        self._operate(name, {"src0": of, "dst": to}, reads=[of], writes=[to])

    def integer(self, dst: TileView, x: TileView, op: str, y: TileView | int) -> None:
        """dst = x op y on 32-bit integers that wrap around; y is a view or a number, max, min and shift_right_signed
        take int32 only."""
        name = "integer"
        to, of = self._operand(name, "dst", dst, _INTEGERS), self._operand(name, "x", x, _INTEGERS)
        kind = _choice(name, "op", op, Integer)
        operands, reads = {"src0": of, "dst": to}, [of]
        values = {"op": kind}
        if isinstance(y, TileView):
            operands["src1"] = self._operand(name, "y", y, _INTEGERS)
            reads.append(operands["src1"])
        else:
            need(-(1 << 31) <= y < 1 << 32, f"{name} takes a number of 32 bits, and {y} is none")
            values |= {"by_number": 1, "number": int(y) & _MASK}
        for view in reads:
            _same(name, "dst", to, view.tile.name, view)
            _in_place(name, to, view)
            signed = view.dtype == "int32" or kind not in _SIGNED
            need(signed, f"{name} takes int32 for {op}, not {view.dtype}")
        self._operate(name, operands, reads=reads, writes=[to], values=values)

    def prefix_sum(self, dst: TileView, x: TileView, *, exclusive: bool = False) -> None:
        """dst[p, i] = x[p, 0] + ... + x[p, i], or up to x[p, i - 1] if exclusive, of 32-bit integers that wrap."""
        name = "prefix_sum"
        to, of = self._operand(name, "dst", dst, _INTEGERS), self._operand(name, "x", x, _INTEGERS)
        _same(name, "dst", to, "x", of)
        _in_place(name, to, of)
        self._operate(
            name, {"src0": of, "dst": to}, reads=[of], writes=[to], values={"exclusive": int(exclusive)}
        )  # fmt: skip

    def histogram(self, dst: TileView, x: TileView) -> None:
        """dst[p, b] = how many elements of x[p, :] are b, for all columns b of dst."""
        name = "histogram"
        to, of = self._operand(name, "dst", dst, _INTEGERS), self._operand(name, "x", x, _INTEGERS)
        _same_partitions(name, "dst", to, "x", of)
        need(to.elements <= BINS_MAX, f"{name} has at most {BINS_MAX} bins, and dst {to.elements} columns")
        _apart(name, {"dst": to}, {"x": of})
        self._operate(name, {"src0": of, "dst": to}, reads=[of], writes=[to])

    def route(self, lists: TileView, counts: TileView, logits: TileView, *, tokens: int, k: int) -> None:
        """Tokens to their k experts of the highest logits. Expert e is partition e of lists and counts; the logits of
        token b P + p are columns b E to b E + E - 1 of partition p of P. lists[e, :] are its tokens, ascending, then
        -1; counts[e] is how many chose it, even if lists has fewer columns."""
        name = "route"
        of = self._operand(name, "logits", logits, _ORDERED)
        to, number = (self._operand(name, n, v, ("int32",)) for n, v in (("lists", lists), ("counts", counts)))
        _same_partitions(name, "counts", number, "lists", to)
        experts = to.partitions
        need(number.elements == 1, f"{name} has one count an expert, not {number.elements}")
        need(of.elements % experts == 0, f"{name} of {experts} experts takes a multiple of it as columns of logits, "
             f"not {of.elements}")  # fmt: skip
        most = of.partitions * of.elements // experts
        need(1 <= tokens <= most, f"{name} has logits of {most} tokens, and {tokens} are asked for")
        need(1 <= k <= min(K_MAX, experts), f"{name} takes k from 1 to {min(K_MAX, experts)} of {experts}, not {k}")
        need(tokens * k <= ROUTED_MAX, f"{name} makes at most {ROUTED_MAX:,} choices, not {tokens} tokens of {k}")
        _apart(name, {"lists": to, "counts": number}, {"logits": of})
        values = {"tokens": tokens, "experts": experts, "k": k}
        self._operate(
            name, {"src0": of, "src1": number, "dst": to}, reads=[of], writes=[to, number], values=values
        )  # fmt: skip

    def _operate(
        self,
        name: str,
        operands: dict[str, TileView],
        *,
        reads: Sequence[TileView] = (),
        writes: Sequence[TileView],
        values: dict[str, int] | None = None,
    ) -> None:
        self._need_engine()
        image = self._image(library(vectors=self._k.cfg.gpsimd.vectors))
        word = ARGUMENTS[name].pack(values or {})
        args = (word & ((1 << 64) - 1), word >> 64)
        self._start(image, image.entry_of(name), self._cores(None), operands, reads, writes, args, _LONGEST)

    def _operand(self, name: str, what: str, view: TileView, dtypes: Sequence[str], axes: int = 1) -> TileView:
        self._need_sbuf(view, f"{what} of {name}")
        need(view.dtype in dtypes, f"{what} of {name} is {' or '.join(dtypes)}, not {view.dtype}")
        have = len(view.dims)
        need(have <= axes, f"{what} of {name} has at most {axes} free axes, not {have}")
        return view

    def _need_indices(self, to: TileView, at: TileView) -> None:
        """KernelError unless the partitions of each core hold enough of the indices that they share."""
        for first in range(at.start - at.start % self._lanes, at.start + at.partitions, self._lanes):
            rows = min(first + self._lanes, at.start + at.partitions) - max(first, at.start)
            need(
                rows * at.elements >= to.elements,
                f"gather takes {to.elements} shared indices of each core, and {rows} partitions of {at.elements} hold "
                f"{rows * at.elements}",
            )


def _choice(name: str, what: str, word: str, kinds: type[IntEnum]) -> int:
    names = [kind.name.lower() for kind in kinds]
    need(word in names, f"{what} of {name} is one of {', '.join(names)}, not {word!r}")
    return int(kinds[word.upper()])


def _bits(name: str, value: float, dtype: str) -> int:
    """32 bits of a number in a format."""
    if dtype == "fp32":
        with np.errstate(over="ignore"):
            return int(np.float32(value).view(np.uint32))
    low, high = (-(1 << 31), 1 << 31) if dtype == "int32" else (0, 1 << 32)
    whole = isinstance(value, (int, np.integer)) or float(value).is_integer()
    need(whole and low <= value < high, f"{name} fills {dtype} with a whole number of it, and {value} is none")
    return int(value) & _MASK


def _steps(name: str, view: TileView, steps: Sequence[int] | None) -> dict[str, int]:
    """Fields step0 and so on, the innermost first."""
    counts = [count for _, count in view.dims]
    chosen = [prod(counts[axis + 1 :]) for axis in range(len(counts))] if steps is None else list(steps)
    need(len(chosen) == len(counts), f"{name} has a step for each of {len(counts)} free axes, not {len(chosen)}")
    for step in chosen:
        need(-(1 << 15) <= step < 1 << 15, f"{name} has steps of 16 bits with sign, and {step} is none")
    return {f"step{n}": int(step) for n, step in enumerate(reversed(chosen))}


def _same_partitions(name: str, what: str, view: TileView, other: str, of: TileView) -> None:
    need(
        (view.start, view.partitions) == (of.start, of.partitions),
        f"{what} of {name} lies on the partitions of {other}, {of.partitions} from {of.start}, not {view.partitions} "
        f"from {view.start}",
    )


def _same(name: str, what: str, view: TileView, other: str, of: TileView) -> None:
    _same_partitions(name, what, view, other, of)
    need(view.shape == of.shape, f"{what} of {name} has the shape of {other}, {of.shape}, not {view.shape}")


def _one_partition(name: str, what: str, view: TileView) -> None:
    need(view.partitions == 1, f"{what} of {name} is one partition, not {view.partitions}")


def _overlap(one: TileView, other: TileView) -> bool:
    inside = zip(one.box, other.box, strict=True)
    return one.tile is other.tile and all(a[0] < b[1] and b[0] < a[1] for a, b in inside)


def _in_place(name: str, to: TileView, of: TileView) -> None:
    """KernelError if they overlap and are not the same elements in the same order."""
    same = (to.offset, to.dims) == (of.offset, of.dims)
    need(
        same or not _overlap(to, of),
        f"dst of {name} overlaps {of.tile.name} in other places; it may be the same elements, or apart",
    )


def _apart(name: str, writes: dict[str, TileView], reads: dict[str, TileView]) -> None:
    """KernelError if something that is written overlaps anything else."""
    for what, view in writes.items():
        for other, of in (writes | reads).items():
            need(what == other or not _overlap(view, of), f"{what} and {other} of {name} overlap")
