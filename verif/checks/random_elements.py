"""Random statements of the vector and scalar engines for random kernels: operators, formats, columns, accumulators."""

from collections.abc import Callable
from typing import Any

import numpy as np

from firmware.views import TileView
from rtl.contract.isa import REDUCTIONS, AluOp, block
from verif.checks.random_maker import Maker

__all__ = ["FORMATS", "RandomElements"]

FORMATS = ("fp32", "bf16", "fp16", "e4m3fn", "e5m2", "int8", "uint8", "int16", "uint16", "int32", "uint32")
_NUMBERS = tuple(op for op in AluOp if op < AluOp.BIT_AND)
_BITS = tuple(op for op in AluOp if op >= AluOp.BIT_AND)
_UNARY = (AluOp.BYPASS, AluOp.ABS, AluOp.SQUARE, AluOp.RELU, AluOp.BIT_NOT)
_SCAN = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN)
_COMPARE = (AluOp.EQ, AluOp.NE, AluOp.GT, AluOp.GE, AluOp.LT, AluOp.LE)
_PAIRS = (("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"))
_DIRECT = ("copy", "abs", "square", "relu", "prelu", "leaky_relu", "sign")
_TABLES = ("gelu", "tanh", "exp", "sqrt")
COLUMNS = 8


class RandomElements:
    """Statements on tiles of its own and on PSUM; `statement` adds one to three."""

    def __init__(self, maker: Maker):
        self.maker = maker
        self.rng = maker.rng
        self.vector, self.scalar = maker.k.vector, maker.k.scalar
        self.tiles = {f: maker.tile(f"elements {f}", f, maker.width) for f in FORMATS}
        self.columns = maker.tile("columns", "fp32", COLUMNS)
        self.table = ""

    def statement(self) -> None:
        """Something at random."""
        kinds: tuple[Callable[[], None], ...] = (
            self._tensor_tensor,
            self._tensor_scalar,
            self._scalar_tensor_tensor,
            self._reduce,
            self._scan,
            self._select,
            self._range_select,
            self._exp,
            self._short,
            self._activation,
            self._scalar_copy,
            self._affine,
            self._transpose,
            self._shuffle,
            self._statistics,
            self._eight,
        )
        kinds[int(self.rng.integers(len(kinds)))]()

    def _one(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def _flag(self) -> bool:
        return bool(self.rng.integers(2))

    def _operands(self, sources: int, formats: tuple[str, ...] = FORMATS, elements: int = 0) -> list[TileView]:
        """A destination, then sources: one shape, tiles apart, at most one source in PSUM."""
        maker = self.maker
        elements = elements or maker.upto(maker.width)
        names = list(self.rng.permutation(formats))
        _, count = maker.partitions(maker.cfg.tensor.cols)
        views: list[TileView] = []
        for name in names[: sources + 1]:
            start, _ = maker.partitions(maker.cfg.partitions, count)
            views.append(maker.pattern(self.tiles[str(name)], start, count, elements))
        if formats is FORMATS and self.rng.integers(4) == 0:
            start, _ = maker.partitions(maker.cfg.tensor.cols, count)
            sums = maker.pattern(self._one(maker.sums), start, count, elements)
            views[int(self.rng.integers(min(2, sources + 1)))] = sums
        return views

    def _column(self, beside: TileView) -> TileView:
        at = int(self.rng.integers(COLUMNS))
        start = beside.start - self.columns.start
        return self.columns[start : start + beside.partitions, at : at + 1]

    def _scalar(self, beside: TileView) -> float | TileView:
        if self._flag():
            return self._column(beside)
        return float(np.float32(self._one((0.0, 1.0, -1.5, 3e38, float(self.rng.standard_normal())))))

    def _operator(self, beside: TileView) -> tuple[AluOp, Any, bool]:
        """Operator, operand, reverse."""
        op = self._one(_NUMBERS)
        return (op, None, False) if op in _UNARY else (op, self._scalar(beside), self._flag())

    def _integers(self) -> tuple[str, ...]:
        return self._one((("int8", "uint8"), ("int16", "uint16"), ("int32", "uint32")))

    def _tensor_tensor(self) -> None:
        dst, x, y = self._operands(2)
        self.vector.tensor_tensor(dst, x, self._one(_NUMBERS), y, reverse=self._flag())

    def _tensor_scalar(self) -> None:
        if self.rng.integers(4) == 0:
            dst, x = self._operands(1, self._integers())
            op0, op1 = self._one(_BITS), self._one((*_BITS, AluOp.BYPASS))
            a, b = (None if op in _UNARY else int(self.rng.integers(1 << 32)) for op in (op0, op1))
            return self.vector.tensor_scalar(dst, x, op0, a, op1, b)
        dst, x = self._operands(1)
        (op0, a, reverse0), (op1, b, reverse1) = self._operator(x), self._operator(x)
        return self.vector.tensor_scalar(dst, x, op0, a, op1, b, reverse0=reverse0, reverse1=reverse1)

    def _scalar_tensor_tensor(self) -> None:
        dst, x, y = self._operands(2)
        op0, a, reverse0 = self._operator(x)
        op1 = self._one(_NUMBERS)
        self.vector.scalar_tensor_tensor(dst, x, op0, a, op1, y, reverse0=reverse0, reverse1=self._flag())

    def _reduce(self) -> None:
        _, x = self._operands(1)
        axes = int(self.rng.integers(1, len(x.dims) + 1))
        outer = int(np.prod([count for _, count in x.dims[: len(x.dims) - axes]]))
        tile = self.tiles[self._one([f for f in FORMATS if f != x.dtype])]
        start, _ = self.maker.partitions(self.maker.cfg.partitions, x.partitions)
        dst = self.maker.pattern(tile, start, x.partitions, outer)
        self.vector.reduce(dst, x, self._one(REDUCTIONS), axes=axes, negate=self._flag())

    def _scan(self) -> None:
        dst, x, y = self._operands(2)
        ops = self._one(_SCAN), self._one(_SCAN)
        flags = {"reverse0": self._flag(), "reverse1": self._flag()}
        self.vector.scan(dst, x, *ops, y, initial=self._scalar(x), **flags)

    def _select(self) -> None:
        dst, x, mask = self._operands(2)
        if self._flag():
            self.vector.copy_predicated(dst, mask, x)
        else:
            self.vector.select(dst, mask, x, self._scalar(x))

    def _range_select(self) -> None:
        dst, x = self._reducible()
        for reduce in ("reset_reduce", "reduce")[: int(self.rng.integers(3))] or (None,):
            store = self._column(dst) if reduce and self._flag() else None
            bounds = (self._one(_COMPARE), self._scalar(x), self._one(_COMPARE), float(self.maker.width // 2))
            start = float(self.rng.integers(-5, 20))
            self.vector.range_select(dst, x, *bounds, start=start, reduce=reduce, store=store)

    def _reducible(self) -> list[TileView]:
        """Two operands on the same partitions, as the accumulator wants them."""
        while True:
            dst, x = self._operands(1)
            if dst.start == x.start:
                return [dst, x]

    def _exp(self) -> None:
        dst, x = self._reducible()
        first = self._one((None, "reset_reduce", "load_reduce"))
        for reduce in (first, "reduce")[: 1 if first is None else int(self.rng.integers(1, 3))]:
            init = self._scalar(x) if reduce == "load_reduce" else None
            store = self._column(dst) if reduce and self._flag() else None
            self.vector.exp(dst, x, self._scalar(x), reduce=reduce, init=init, store=store)

    def _short(self) -> None:
        dst, x = self._operands(1, elements=self.maker.upto(8))
        if self._flag():
            self.vector.reciprocal(dst, x)
        else:
            self.vector.memset(dst, self._scalar(dst))

    def _activation(self) -> None:
        if self.rng.integers(4) == 0:
            self.table = str(self._one(_TABLES))
            self.scalar.load_table([self.table])
        dst, x = self._reducible()
        name = self._one((*_DIRECT, self.table) if self.table else _DIRECT)
        for reduce in ("reset_reduce", "reduce")[: int(self.rng.integers(3))] or (None,):
            store = self._column(dst) if reduce and self._flag() else None
            flags = {"reverse0": self._flag(), "reverse1": self._flag()}
            self.scalar.activation(
                dst,
                x,
                name,
                scale=self._scalar(x),
                bias=self._scalar(x),
                ops=self._one(_PAIRS),
                reduce=reduce,
                reduce_op=self._one(REDUCTIONS),
                store=store,
                **flags,
            )

    def _scalar_copy(self) -> None:
        """Neighbours of one narrow format at times, which go in pairs."""
        if self._flag():
            tile = self.tiles[self._one(("bf16", "fp16", "int8", "uint16"))]
            half = self.maker.width // 2
            self.scalar.tensor_copy(tile[:, half : 2 * half], tile[:, :half])
        else:
            self.scalar.tensor_copy(*self._operands(1))

    def _affine(self) -> None:
        dst, x = self._operands(1)
        op0, op1 = self._one(("multiply", "add", "subtract", "bypass")), self._one(("add", "subtract", "bypass"))
        a, b = (None if op == "bypass" else self._scalar(x) for op in (op0, op1))
        reverse0, reverse1 = (op != "bypass" and self._flag() for op in (op0, op1))
        self.scalar.tensor_scalar(dst, x, op0, a, op1, b, reverse0=reverse0, reverse1=reverse1)

    def _transpose(self) -> None:
        q = block(self.maker.cfg.partitions)
        tile = self.tiles[self._one(FORMATS)]
        half = self.maker.width // 2 // q * q
        self.vector.transpose(tile[:, :half], tile[:, half : 2 * half])

    def _shuffle(self) -> None:
        q = block(self.maker.cfg.partitions)
        mask = [None if self.rng.integers(8) == 0 else int(self.rng.integers(q)) for _ in range(q)]
        tile = self.tiles[self._one(FORMATS)]
        half = self.maker.width // 2
        self.vector.shuffle(tile[:, half : 2 * half], tile[:, :half], mask)

    def _statistics(self) -> None:
        _, x = self._operands(1)
        fp32, other = self.tiles["fp32"], self.tiles["bf16"]
        target = other if x.tile is fp32 else fp32
        lanes = slice(x.start, x.start + x.partitions)
        at = int(self.rng.integers(0, self.maker.width - 8))
        self.vector.bn_stats(target[lanes, at : at + 6], x)
        self.vector.bn_aggr(target[lanes, at + 6 : at + 8], target[lanes, at : at + 6])

    def _eight(self) -> None:
        width = self.maker.width
        p = self.maker.cfg.partitions
        x = self.tiles[self._one(("fp32", "bf16", "int8", "uint32"))]
        values = self.tiles["fp16"][:, :8]
        self.vector.max8(values, x[:, : width // 2])
        self.vector.find_index8(self.tiles["uint16"][:p, 8:16], x[:, : width // 2], values)
        self.vector.match_replace8(x[:, : width // 2], x[:, : width // 2], values, self._scalar(x[:, :1]))
