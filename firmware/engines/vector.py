"""k.vector: element-wise operators, reductions, exp, and what sorts and shuffles. Destination first."""

from collections.abc import Sequence
from typing import Any

from firmware.arguments import checked
from firmware.engines.base import need
from firmware.engines.elementwise import Scalar, is_bit_operator, operator
from firmware.engines.quantize import QuantizingEngine
from firmware.views import KernelError, TileView
from rtl.contract.formats import FORMATS
from rtl.contract.isa import REDUCTIONS, SHUFFLE_KEEP, AluOp, Opcode, Queue, block
from rtl.contract.memmap import Space

__all__ = ["VectorEngine"]

Op = str | AluOp
_UNARY = (AluOp.BYPASS, AluOp.ABS, AluOp.SQUARE, AluOp.RELU, AluOp.BIT_NOT)
_SCAN = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN)
_COMPARISONS = (AluOp.EQ, AluOp.NE, AluOp.GT, AluOp.GE, AluOp.LT, AluOp.LE)
_BN_ELEMENTS_MAX = 512
_MAX8_ELEMENTS = (8, 16384)


@checked
class VectorEngine(QuantizingEngine):
    """The vector engine: `k.vector`. `a` and `b` are numbers or FP32 columns of SBUF."""

    queue = Queue.VECTOR

    def copy(self, dst: TileView, src: TileView) -> None:
        """dst = src, converted to dst's dtype with rounding to nearest even."""
        self._shaped("a copy", dst, src)
        self._send(Opcode.TENSOR_COPY, dst, (src,), {})

    def tensor_tensor(self, dst: TileView, x: TileView, op: Op, y: TileView, *, reverse: bool = False) -> None:
        """dst = x op y; y op x with `reverse`."""
        op0 = operator(op, "tensor_tensor")
        self._shaped("tensor_tensor", dst, x, y)
        self._bits_or_numbers((op0,), dst, x, y)
        self._send(Opcode.TENSOR_TENSOR, dst, (x, y), {"op0": op0, "reverse0": reverse})

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
        """dst = (x op0 a) op1 b; `reverse0`: a op0 x, `reverse1`: b op1 (...). op1 may be left out."""
        what = "tensor_scalar"
        ops = operator(op0, what), operator(AluOp.BYPASS if op1 is None else op1, what)
        self._shaped(what, dst, x)
        bits = self._bits_or_numbers(ops, dst, x)
        fields: dict[str, Any] = {"op0": ops[0], "op1": ops[1], "reverse0": reverse0, "reverse1": reverse1}
        fields |= self._operand(ops[0], a, 0, x, what, bits, reverse0)
        fields |= self._operand(ops[1], b, 1, x, what, bits, reverse1)
        self._send(Opcode.TENSOR_SCALAR, dst, (x,), fields, columns=(a, b))

    def scalar_tensor_tensor(
        self,
        dst: TileView,
        x: TileView,
        op0: Op,
        a: Scalar | None,
        op1: Op,
        y: TileView,
        *,
        reverse0: bool = False,
        reverse1: bool = False,
    ) -> None:
        """dst = (x op0 a) op1 y; `reverse0`: a op0 x, `reverse1`: y op1 (...)."""
        what = "scalar_tensor_tensor"
        ops = operator(op0, what), operator(op1, what)
        self._shaped(what, dst, x, y)
        bits = self._bits_or_numbers(ops, dst, x, y)
        fields: dict[str, Any] = {"op0": ops[0], "op1": ops[1], "reverse0": reverse0, "reverse1": reverse1}
        fields |= self._operand(ops[0], a, 0, x, what, bits, reverse0)
        self._send(Opcode.SCALAR_TENSOR_TENSOR, dst, (x, y), fields, columns=(a,))

    def reduce(self, dst: TileView, x: TileView, op: Op, *, axes: int = 1, negate: bool = False) -> None:
        """dst = add, max, min, absmax or absmin over the `axes` innermost free axes of x; sign turned by `negate`."""
        op0 = operator(op, "reduce", REDUCTIONS)
        self._formats("reduce", dst, x)
        need(
            1 <= axes <= len(x.dims),
            f"reduce works on 1 to {len(x.dims)} axes of {x.tile.name}, which has that many, not {axes}",
        )
        outer = 1
        for _, count in x.dims[: len(x.dims) - axes]:
            outer *= count
        need(
            (dst.partitions, dst.elements) == (x.partitions, outer),
            f"reduce of {axes} axes of {x.tile.name}, {x.shape}, gives {x.partitions} x {outer}; {dst.tile.name} is "
            f"{dst.shape}",
        )
        fields = {"op0": op0, "axes": axes - 1, "negate": negate}
        self._send(Opcode.TENSOR_REDUCE, dst, (x,), fields, writes_last=outer == 1)

    def scan(
        self,
        dst: TileView,
        x: TileView,
        op0: Op,
        op1: Op,
        y: TileView,
        *,
        initial: Scalar = 0.0,
        reverse0: bool = False,
        reverse1: bool = False,
    ) -> None:
        """dst[i] = r[i] = (r[i-1] op0 x[i]) op1 y[i], r[-1] = initial."""
        ops = operator(op0, "scan", _SCAN), operator(op1, "scan", _SCAN)
        self._shaped("scan", dst, x, y)
        fields: dict[str, Any] = {"op0": ops[0], "op1": ops[1], "reverse0": reverse0, "reverse1": reverse1}
        fields |= self._scalar(initial, 0, x, "scan")
        self._send(Opcode.TENSOR_SCAN, dst, (x, y), fields, columns=(initial,))

    def select(self, dst: TileView, mask: TileView, x: TileView, a: Scalar) -> None:
        """dst = x where mask is not 0, else a."""
        self._shaped("select", dst, x, mask)
        self._send(Opcode.SELECT, dst, (x, mask), self._scalar(a, 0, x, "select"), columns=(a,))

    def copy_predicated(self, dst: TileView, mask: TileView, x: TileView) -> None:
        """dst = x where mask is not 0; elsewhere dst stays."""
        self._shaped("copy_predicated", dst, x, mask)
        self._send(Opcode.COPY_PREDICATED, dst, (x, mask), {})

    def range_select(
        self,
        dst: TileView,
        x: TileView,
        op0: Op,
        lo: Scalar,
        op1: Op,
        hi: Scalar,
        *,
        start: float = 0,
        reduce: str | None = None,
        store: TileView | None = None,
    ) -> None:
        """dst = x where (i + start op0 lo) and (i + start op1 hi), i counting elements; else the least FP32.

        `reduce` ("reset_reduce", "reduce"): the accumulator takes the maximum; `store`: where it goes.
        """
        what = "range_select"
        ops = operator(op0, what, _COMPARISONS), operator(op1, what, _COMPARISONS)
        self._shaped(what, dst, x)
        need(reduce != "load_reduce", f"{what} has no operand left for reduce='load_reduce'")
        fields: dict[str, Any] = {"op0": ops[0], "op1": ops[1]}
        fields |= self._scalar(lo, 0, x, what) | self._scalar(hi, 1, x, what)
        fields["imm1"] |= self._bits(start, what) << 32
        fields |= self._accumulator(dst, x, reduce, None, store, what)
        self._send(Opcode.RANGE_SELECT, dst, (x,), fields, columns=(lo, hi), store=store)

    def bn_stats(self, dst: TileView, x: TileView) -> None:
        """dst (6 elements) = count, mean, variance * count of the even elements of x, then of the odd ones."""
        self._formats("bn_stats", dst, x)
        self._to_sbuf("bn_stats", dst)
        need(
            x.elements <= _BN_ELEMENTS_MAX,
            f"bn_stats takes at most {_BN_ELEMENTS_MAX} elements, not the {x.elements} of {x.tile.name}",
        )
        self._gives("bn_stats", dst, x, 6)
        self._send(Opcode.BN_STATS, dst, (x,), {}, writes_last=True)

    def bn_aggr(self, dst: TileView, x: TileView) -> None:
        """dst (2 elements) = mean and variance of the triples (count, mean, variance * count) in x."""
        self._formats("bn_aggr", dst, x)
        self._to_sbuf("bn_aggr", dst)
        need(x.elements % 3 == 0, f"bn_aggr takes triples; {x.tile.name} has {x.elements} elements, no multiple of 3")
        self._gives("bn_aggr", dst, x, 2)
        self._send(Opcode.BN_AGGR, dst, (x,), {}, writes_last=True)

    def reciprocal(self, dst: TileView, x: TileView) -> None:
        """dst = 1 / x, correctly rounded; 8 cycles an element."""
        self._shaped("reciprocal", dst, x)
        self._send(Opcode.RECIPROCAL, dst, (x,), {})

    def memset(self, dst: TileView, a: Scalar) -> None:
        """dst = a, converted."""
        self._target(dst, "memset")
        self._send(Opcode.MEMSET, dst, (), self._scalar(a, 0, dst, "memset"), columns=(a,))

    def max8(self, dst: TileView, x: TileView) -> None:
        """dst = the 8 largest elements of x, descending."""
        self._formats("max8", dst, x)
        self._to_sbuf("max8", dst)
        self._eight("max8", x)
        self._gives("max8", dst, x, 8)
        self._send(Opcode.MAX8, dst, (x,), {}, writes_last=True)

    def find_index8(self, dst: TileView, x: TileView, values: TileView) -> None:
        """dst (8 elements of uint16 or uint32) = where in x the 8 values lie; all ones where one does not."""
        what = "find_index8"
        self._formats(what, dst, x, values)
        self._eight(what, x)
        self._gives(what, dst, x, 8)
        self._gives(what, values, x, 8)
        need(
            dst.dtype in ("uint16", "uint32"),
            f"{what} writes uint16 or uint32, not {dst.dtype}, the format of {dst.tile.name}",
        )
        self._send(Opcode.FIND_INDEX8, dst, (x, values), {}, writes_last=True)

    def match_replace8(self, dst: TileView, x: TileView, values: TileView, a: Scalar) -> None:
        """dst = x with the first occurrence of each of the 8 values replaced by a."""
        what = "match_replace8"
        self._shaped(what, dst, x)
        self._to_sbuf(what, dst)
        self._source(values, what)
        self._eight(what, x)
        self._gives(what, values, x, 8)
        self._send(Opcode.MATCH_REPLACE8, dst, (x, values), self._scalar(a, 0, x, what), columns=(a,))

    def transpose(self, dst: TileView, src: TileView) -> None:
        """Blocks of Q x Q elements, Q = 32 (or all partitions, if fewer), are transposed where they stand."""
        q = block(self._k.cfg.partitions)
        self._shaped("transpose", dst, src)
        self._raw("transpose", dst, src, q)
        need(
            src.elements % q == 0,
            f"transpose takes a multiple of {q} elements, not the {src.elements} of {src.tile.name}",
        )
        self._send(Opcode.TRANSPOSE, dst, (src,), {})

    def shuffle(self, dst: TileView, src: TileView, mask: Sequence[int | None]) -> None:
        """Partition j of each block of Q = dst gets partition mask[j] of the block; None leaves it untouched."""
        q = block(self._k.cfg.partitions)
        self._shaped("shuffle", dst, src)
        self._raw("shuffle", dst, src, q)
        need(
            len(mask) == q and all(m is None or 0 <= m < q for m in mask),
            f"a shuffle's mask has {q} entries, each None or 0 to {q - 1}, not {list(mask)}",
        )
        packed = sum((SHUFFLE_KEEP if m is None else m) << 6 * j for j, m in enumerate(mask))
        fields = {f"imm{i}": packed >> 64 * i & (1 << 64) - 1 for i in range(3)}
        self._send(Opcode.SHUFFLE, dst, (src,), fields)

    def exp(
        self,
        dst: TileView,
        x: TileView,
        m: Scalar = 0.0,
        *,
        reduce: str | None = None,
        init: Scalar | None = None,
        store: TileView | None = None,
    ) -> None:
        """dst = exp(x - m). `reduce`: the accumulator = the sum ("reset_reduce"), itself + the sum ("reduce") or
        init + the sum ("load_reduce"); `store`: where it goes. The sum is of values before they are rounded to dst."""
        self._shaped("exp", dst, x)
        fields = self._scalar(m, 0, x, "exp")
        fields |= self._accumulator(dst, x, reduce, init, store, "exp")
        if init is not None:
            fields |= self._scalar(init, 1, x, "exp")
        self._send(Opcode.EXP, dst, (x,), fields, columns=(m, init), store=store)

    def _formats(self, what: str, dst: TileView, *sources: TileView) -> None:
        self._target(dst, what)
        for view in sources:
            self._source(view, what)

    def _shaped(self, what: str, dst: TileView, *sources: TileView) -> None:
        self._formats(what, dst, *sources)
        for view in sources:
            self._like(dst, view, what)

    def _gives(self, what: str, view: TileView, x: TileView, count: int) -> None:
        need(
            (view.partitions, view.elements) == (x.partitions, count),
            f"{what} needs {x.partitions} x {count} elements of {view.tile.name}, not {view.shape}",
        )

    def _eight(self, what: str, x: TileView) -> None:
        low, high = _MAX8_ELEMENTS
        need(
            low <= x.elements <= high,
            f"{what} searches {low} to {high} elements, not the {x.elements} of {x.tile.name}",
        )

    def _to_sbuf(self, what: str, dst: TileView) -> None:
        need(dst.tile.space == Space.SBUF, f"{what} writes to SBUF only, not to {dst.tile.name} in PSUM")

    def _raw(self, what: str, dst: TileView, src: TileView, q: int) -> None:
        self._to_sbuf(what, dst)
        need(
            dst.dtype == src.dtype,
            f"{what} moves bits: {dst.tile.name} is {dst.dtype}, {src.tile.name} is {src.dtype}; they must be the same",
        )
        for view in (dst, src):
            need(
                view.start % q == 0 and view.partitions % q == 0,
                f"{what} works on blocks of {q} partitions; {view.tile.name} is on {view.partitions} from {view.start}",
            )

    def _bits_or_numbers(self, ops: tuple[AluOp, ...], *views: TileView) -> bool:
        """Whether the operators work on bits; then formats must be integers of one size."""
        if not any(is_bit_operator(op) for op in ops):
            return False
        need(
            all(is_bit_operator(op) or op == AluOp.BYPASS for op in ops),
            f"{' and '.join(op.name.lower() for op in ops)} do not go together: one works on bits, one on numbers",
        )
        formats = [FORMATS[view.dtype] for view in views]
        need(
            all(f.integer and f.bits == formats[0].bits for f in formats),
            f"{ops[0].name.lower()} works on bits, so all formats must be integers of one size, not "
            f"{', '.join(f.name for f in formats)}",
        )
        return True

    def _operand(
        self, op: AluOp, value: Scalar | None, slot: int, x: TileView, what: str, bits: bool, reverse: bool
    ) -> dict[str, Any]:
        name = "ab"[slot]
        if op in _UNARY:
            need(value is None, f"{what} with {op.name.lower()} takes no operand {name}")
            need(not reverse, f"{what} with {op.name.lower()} has nothing to reverse")
            return {}
        if value is None:
            raise KernelError(f"{what} with {op.name.lower()} needs an operand {name}")
        return self._scalar(value, slot, x, what, bits=bits)
