"""k.scalar: functions of scaled elements, from loadable tables; copies, scale and bias. Destination first."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from firmware.arguments import at_once, checked
from firmware.builder import Builder
from firmware.engines.base import need
from firmware.engines.elementwise import ElementwiseEngine, Scalar, operator
from firmware.views import HbmView, KernelError, Tile, TileView
from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION, image
from rtl.contract.isa import REDUCTIONS, AluOp, Function, Opcode, Queue
from rtl.contract.rules import FIRST_OPERATORS, PAIRS, SECOND_OPERATORS

__all__ = ["ScalarEngine"]

Op = str | AluOp
_TILE_SHARE = 16  # of SBUF, at most, that tables pass through
_PAIR_BYTES = 8
_ROWS = 1 << 16  # more than all tables together have
_SLOPED = {Function.PRELU: 0.25, Function.LEAKY_RELU: 0.01}


def _function(name: str | Function) -> Function:
    text = name.name.lower() if isinstance(name, Function) else name
    names = [f.name.lower() for f in Function]
    need(text in names, f"there is no function {text!r}; there are {', '.join(names)}")
    return Function[text.upper()]


@checked
class ScalarEngine(ElementwiseEngine):
    """The scalar engine: `k.scalar`."""

    queue = Queue.SCALAR

    def __init__(self, kernel: Builder):
        super().__init__(kernel)
        self._loaded: tuple[Function, ...] = ()
        self._images: dict[tuple[Function, ...], HbmView] = {}
        self._tile: Tile | None = None

    def load_table(self, names: Sequence[str | Function]) -> None:
        """Load the tables of these functions in place of those before. Nothing happens if they are loaded.

        The table comes from HBM piece by piece, by way of a tile of SBUF that all tables share.
        """
        wanted = tuple(sorted({_function(name) for name in names}))
        if wanted and set(wanted) <= set(self._loaded):
            return
        k = self._k
        if wanted not in self._images:
            bits = self._image(wanted)
            self._images[wanted] = k.hbm(f"functions {len(self._images)}", bits.shape, "uint32", bits)
        source = self._images[wanted]
        if self._tile is None:
            # Any table will do, so the hardware's rows do not matter here: it may have too few for all at once.
            everything = image([f.name.lower() for f in Function if f >= FIRST_TABLE_FUNCTION], _ROWS, k.cfg.partitions)
            columns = min(len(everything[0]), k.cfg.sbuf.partition_bytes // _TILE_SHARE // _PAIR_BYTES * 2)
            self._tile = k.sbuf("functions", partitions=k.cfg.partitions, columns=columns, dtype="uint32")
        total, piece = source.shape[1], self._tile.columns
        for first in range(0, total, piece):
            last = min(first + piece, total)
            view = self._tile[:, : last - first]
            k.dma(view, source[:, first:last])
            # What a piece holds counts only when all pieces have come.
            held = sum(1 << f for f in wanted) if last == total else 0
            self._send(Opcode.LOAD_TABLE, None, (view,), {"imm0": held})
        self._loaded = wanted

    @at_once()
    def keeps(self) -> tuple[Any, ...]:
        """The functions of its table."""
        return self._loaded

    @at_once()
    def forgets(self, before: Sequence[tuple[Any, ...]]) -> None:
        """The table is loaded anew before the next function that needs it."""
        self._loaded = ()

    def _image(self, functions: Sequence[Function]) -> np.ndarray:
        """Bits of their table, [partitions, columns]. KernelError if there is none."""
        cfg = self._k.cfg
        try:
            words = image([f.name.lower() for f in functions], cfg.scalar.table_rows, cfg.partitions)
        except ValueError as error:
            raise KernelError(str(error)) from None
        return np.array(words, np.uint32)

    def activation(
        self,
        dst: TileView,
        x: TileView,
        function: str | Function,
        *,
        scale: Scalar = 1.0,
        bias: Scalar = 0.0,
        ops: tuple[Op, Op] = ("multiply", "add"),
        reverse0: bool = False,
        reverse1: bool = False,
        slope: float | None = None,
        reduce: str | None = None,
        reduce_op: Op = "add",
        init: Scalar | None = None,
        store: TileView | None = None,
    ) -> None:
        """dst = function((x op0 scale) op1 bias), by default of x * scale + bias.

        Left out operands are not computed with: -0 stays -0. `slope`: of prelu (0.25) and leaky_relu (0.01).
        `reduce` as in k.vector.exp with the operator `reduce_op`; "load_reduce" only where `bias` is not used.
        """
        code = _function(function)
        need(
            code < FIRST_TABLE_FUNCTION or code in self._loaded,
            f"function {code.name.lower()} is not in the table loaded last "
            f"({', '.join(f.name.lower() for f in self._loaded) or 'none'}); use k.scalar.load_table",
        )
        what = "activation"
        self._shaped(what, dst, x)
        op0, op1, a, b = self._pair(ops, scale, bias, reverse0 or reverse1)
        fields: dict[str, Any] = {"op0": op0, "op1": op1, "reverse0": reverse0, "reverse1": reverse1}
        fields |= self._scalar(a, 0, x, what) if op0 != AluOp.BYPASS else {"imm0": 0}
        if op1 != AluOp.BYPASS:
            fields |= self._scalar(b, 1, x, what)
        fields |= self._accumulator(dst, x, reduce, init, store, what)
        if init is not None:
            need(op1 == AluOp.BYPASS, f"{what} needs its second operand for the bias, so it cannot take init")
            fields |= self._scalar(init, 1, x, what)
        need(
            slope is None or code in _SLOPED,
            f"a slope belongs to {', '.join(f.name.lower() for f in _SLOPED)}, not to {code.name.lower()}",
        )
        if code in _SLOPED:
            fields["imm0"] |= self._bits(_SLOPED[code] if slope is None else slope, what) << 32
        reduces = operator(reduce_op, f"the reduction of {what}", REDUCTIONS)
        fields["imm2"] = fields.get("imm2", 0) | code << 32 | (reduces << 40 if fields.get("reduce") else 0)
        columns = (a if op0 != AluOp.BYPASS else None, b if op1 != AluOp.BYPASS else None, init)
        self._send(Opcode.ACTIVATION, dst, (x,), fields, columns=columns, store=store)

    def copy(self, dst: TileView, src: TileView) -> None:
        """dst = src, converted to dst's dtype with rounding to nearest even; NaN becomes the canonical one."""
        self.activation(dst, src, Function.COPY)

    def tensor_copy(self, dst: TileView, src: TileView) -> None:
        """dst = src, as k.vector.copy: bit for bit between equal formats, else with rounding to nearest even."""
        self._shaped("tensor_copy", dst, src)
        self._send(Opcode.SCALAR_COPY, dst, (src,), {})

    def tensor_scalar(
        self,
        dst: TileView,
        x: TileView,
        op0: Op,
        a: Scalar | None = None,
        op1: Op | None = None,
        b: Scalar | None = None,
        *,
        reverse0: bool = False,
        reverse1: bool = False,
    ) -> None:
        """dst = (x op0 a) op1 b, as k.vector.tensor_scalar; `reverse0`: a op0 x, `reverse1`: b op1 (...).

        op0 is multiply, add, subtract or bypass, op1 add, subtract or bypass; op1 may be left out.
        """
        what = "tensor_scalar on the scalar engine"
        self._shaped(what, dst, x)
        ops = (
            operator(op0, what, FIRST_OPERATORS),
            operator(AluOp.BYPASS if op1 is None else op1, what, SECOND_OPERATORS),
        )
        fields: dict[str, Any] = {"op0": ops[0], "op1": ops[1], "reverse0": reverse0, "reverse1": reverse1}
        for slot, (op, value, reverse) in enumerate(zip(ops, (a, b), (reverse0, reverse1), strict=True)):
            name = "ab"[slot]
            if op == AluOp.BYPASS:
                need(value is None, f"{what} with bypass takes no operand {name}")
                need(not reverse, f"{what} with bypass has nothing to reverse")
                continue
            if value is None:
                raise KernelError(f"{what} with {op.name.lower()} needs an operand {name}")
            fields |= self._scalar(value, slot, x, what)
        self._send(Opcode.SCALAR_AFFINE, dst, (x,), fields, columns=(a, b))

    def _shaped(self, what: str, dst: TileView, x: TileView) -> None:
        """Formats that the engine takes, as many elements on as many partitions."""
        self._target(dst, what)
        self._source(x, what)
        self._like(dst, x, what)

    @staticmethod
    def _pair(ops: tuple[Op, Op], scale: Scalar, bias: Scalar, reverse: bool) -> tuple[AluOp, AluOp, Scalar, Scalar]:
        """Operators and operands, without those that change nothing."""
        op0, op1 = (operator(op, "activation", (AluOp.BYPASS, AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY)) for op in ops)
        need(
            (op0, op1) in PAIRS,
            f"activation takes the pairs {', '.join(f'{p.name.lower()}-{q.name.lower()}' for p, q in PAIRS)}, not "
            f"{op0.name.lower()}-{op1.name.lower()}",
        )
        need(not (reverse and op0 == AluOp.BYPASS), "activation with bypass has nothing to reverse")
        if (op0, op1) != PAIRS[0] or reverse:
            return op0, op1, scale, bias
        no_scale = not isinstance(scale, TileView) and scale == 1
        no_bias = not isinstance(bias, TileView) and bias == 0
        if no_bias:
            return (AluOp.BYPASS if no_scale else AluOp.MULTIPLY), AluOp.BYPASS, scale, bias
        return (AluOp.ADD, AluOp.BYPASS, bias, scale) if no_scale else (op0, op1, scale, bias)
