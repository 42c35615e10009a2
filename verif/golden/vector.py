"""What the vector engine computes: FP32 codes in, FP32 codes out, before the results are rounded to their format.

Operands are arrays [partitions, elements]; `a` and `b` are constants or columns [partitions, 1].
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtl.contract import formats
from rtl.contract.isa import AluOp, Reduce
from verif.golden import alu as operators
from verif.golden import exp as exp_unit
from verif.golden.alu import alu
from verif.golden.conversion import canonical_nan, container, convert, from_fp32, to_fp32
from verif.golden.reciprocal import reciprocal

__all__ = [
    "accumulate",
    "canonical_nan",
    "container",
    "convert",
    "enter",
    "exp",
    "is_true",
    "leave",
    "range_select",
    "reciprocal",
    "scalar_tensor_tensor",
    "select",
    "tensor_copy",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_scan",
]

U32 = NDArray[np.uint32]
Bits = NDArray[np.unsignedinteger]
LEAST = np.uint32(0xFF7FFFFF)
"""The least finite FP32 number: what RANGE_SELECT puts where its conditions do not hold."""


def enter(bits: Bits, fmt: str, raw: bool = False) -> U32:
    """Elements of format `fmt` as FP32 codes; `raw`: integers as 32 bits, signed ones sign-extended."""
    if not raw:
        return to_fp32(bits, fmt)
    known = formats.FORMATS[fmt]
    wide = np.asarray(bits).astype(np.uint32)
    if known.signed:
        unused = np.uint32(32 - known.bits)
        return ((wide << unused).view(np.int32) >> unused.astype(np.int32)).view(np.uint32)
    return wide


def leave(values: U32, fmt: str, raw: bool = False) -> Bits:
    """Results as elements of format `fmt`: rounded once, or with `raw` their low bits."""
    if raw:
        return values.astype(container(fmt))
    return from_fp32(values, fmt)


def tensor_copy(source: ArrayLike, src: str, dst: str) -> Bits:
    """The instruction TENSOR_COPY on [partitions, elements] codes: what its destination then holds."""
    return convert(source, src, dst)


def tensor_scalar(
    x: U32, op0: AluOp, a: U32, op1: AluOp, b: U32, reverse0: bool = False, reverse1: bool = False
) -> U32:
    """(x op0 a) op1 b."""
    return alu(op1, alu(op0, x, a, reverse0), b, reverse1)


def scalar_tensor_tensor(
    x: U32, op0: AluOp, a: U32, op1: AluOp, y: U32, reverse0: bool = False, reverse1: bool = False
) -> U32:
    """(x op0 a) op1 y."""
    return alu(op1, alu(op0, x, a, reverse0), y, reverse1)


def tensor_reduce(x: U32, op: AluOp, inner: int, negate: bool) -> U32:
    """Each run of `inner` elements to one; `negate` turns the sign of what is no NaN."""
    out = operators.reduce(x.reshape(x.shape[0], -1, inner), op)
    if negate:
        nan = np.isnan(out.view(np.float32))
        out = np.where(nan, out, out ^ np.uint32(1 << 31)).astype(np.uint32)
    return out


def tensor_scan(x: U32, y: U32, a: U32, op0: AluOp, op1: AluOp, reverse0: bool = False, reverse1: bool = False) -> U32:
    """r[i] = (r[i-1] op0 x[i]) op1 y[i], r[-1] = a: strictly one after the other."""
    running = np.broadcast_to(a, (x.shape[0], 1))[:, 0]
    out = np.empty_like(x)
    for i in range(x.shape[1]):
        running = alu(op1, alu(op0, running, x[:, i], reverse0), y[:, i], reverse1)
        out[:, i] = running
    return out


def is_true(bits: Bits, fmt: str) -> NDArray[np.bool_]:
    """Which elements are not 0; -0 is 0, NaN is not."""
    return to_fp32(bits, fmt) & np.uint32(0x7FFFFFFF) != 0


def select(x: U32, mask: NDArray[np.bool_], a: U32) -> U32:
    """x where the mask holds, else a."""
    return np.where(mask, x, a).astype(np.uint32)


def range_select(x: U32, op0: AluOp, a: U32, op1: AluOp, b: U32, start: int) -> U32:
    """x where (i + start op0 a) and (i + start op1 b), else the least finite number; i is the element's number."""
    count = np.arange(x.shape[1], dtype=np.float32).view(np.uint32)[None, :]
    index = alu(AluOp.ADD, count, np.array(start, np.uint32))
    inside = (alu(op0, index, a) != 0) & (alu(op1, index, b) != 0)
    return select(x, inside, np.asarray(LEAST))


def exp(x: U32, a: U32) -> U32:
    """exp(x - a), the difference rounded to FP32."""
    flat, shift = (np.ascontiguousarray(v, np.uint32).reshape(-1) for v in np.broadcast_arrays(x, a))
    return exp_unit.exp(flat, shift).reshape(x.shape)


def accumulate(kind: Reduce, op: AluOp, accumulator: U32, result: U32, b: Any) -> U32:
    """The accumulator after an instruction whose own reduction gave `result` [partitions]."""
    match kind:
        case Reduce.RESET_REDUCE:
            return result
        case Reduce.REDUCE:
            return operators.fold(op, accumulator, result)
        case Reduce.LOAD_REDUCE:
            return operators.fold(op, np.broadcast_to(b, (result.size, 1))[:, 0], result)
    return accumulator
