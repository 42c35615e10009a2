"""nki.isa: element-wise instructions, reductions, copies. With `dst` they return nothing; without, a new array."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from firmware.nki import arithmetic, moves, products
from firmware.nki.arithmetic import on_chip
from firmware.nki.array import Array
from firmware.nki.masks import mask_of, masked_copy
from firmware.nki.operators import ALU, name_of_op
from firmware.nki.registry import call, need_dst
from firmware.nki.trace import Trace
from firmware.views import KernelError
from rtl.contract.memmap import Space

__all__ = ["axes_of", "reduced", "unmasked"]

_ISA = "nki.isa"


def unmasked(mask: Any, what: str) -> None:
    """KernelError unless a mask leaves everything."""
    if mask is not None and not np.all(mask):
        raise KernelError(f"{what} takes no mask that leaves elements out here; nl.load and nl.store do")


def _out(
    trace: Trace,
    dst: Any,
    shape: Sequence[int],
    dtype: Any,
    write: Callable[[Array], None],
    sources: Sequence[Any],
    space: Space = Space.SBUF,
    mask: Any = None,
) -> Array | None:
    """With a mask all is computed, and what it leaves out is not written."""
    if dst is None:
        found = trace.result(shape, dtype, write, sources, space=space)
        found.partial = mask_of(mask, found.shape, "an instruction")
        return found
    to = need_dst(dst, "an instruction")
    chosen = mask_of(mask, to.shape, to.name)
    if chosen is None:
        write(to)
        return None
    trace.note("an instruction with a mask: to another array, and a copy of what the mask leaves")
    whole = trace.temp(to.shape, to.dtype)
    write(whole)
    masked_copy(trace, to, whole, chosen)
    return None


@call(_ISA, "instruction", "LOAD_STATIONARY, MULTIPLY_MOVING")
def nc_matmul(
    trace: Trace, dst: Any, stationary: Any, moving: Any, *, accumulate: Any = None, mask: Any = None,
    perf_mode: Any = None, is_stationary_onezero: bool = False, is_moving_onezero: bool = False,
    is_transpose: bool = False,
) -> Any:  # fmt: skip
    unmasked(mask, "nc_matmul")
    if is_transpose:
        trace.note("nc_matmul with is_transpose: a product with the identity that the kernel gives")
    if perf_mode not in (None, "none"):
        products.double_row(trace, need_dst(dst, "nc_matmul"), stationary, moving, accumulate, perf_mode)
        return None
    if dst is not None:
        products.multiply(trace, need_dst(dst, "nc_matmul"), stationary, moving, accumulate)
        return None
    x, y = on_chip(stationary, "nc_matmul"), on_chip(moving, "nc_matmul")
    return trace.result(
        (x.elements, y.elements),
        "float32",
        lambda to: products.multiply(trace, to, x, y, False),
        (x, y),
        space=Space.PSUM,
        product=lambda to: products.multiply(trace, to, x, y),
    )


@call(_ISA, "instruction", "TENSOR_TRANSPOSE; of other formats than fp32 and bf16 after a copy")
def nc_transpose(trace: Trace, dst: Any, data: Any, *, mask: Any = None, dtype: Any = None, engine: Any = None) -> Any:
    unmasked(mask, "nc_transpose")
    x = on_chip(data, "nc_transpose")
    shape = (x.elements, x.partitions)
    return _out(trace, dst, shape, dtype or x.dtype, lambda to: products.transpose_into(trace, to, x), (x,), Space.PSUM)


@call(_ISA, "instruction", "TENSOR_COPY; SCALAR_COPY with engine=nisa.scalar_engine")
def tensor_copy(trace: Trace, dst: Any, src: Any, *, mask: Any = None, dtype: Any = None, engine: Any = None) -> Any:
    x = on_chip(src, "tensor_copy")
    way = "scalar" if engine == "scalar" else "vector"
    return _out(trace, dst, x.shape, dtype or x.dtype, lambda to: moves.copy_into(trace, to, x, way), (x,), mask=mask)


@call(_ISA, "instruction", "TENSOR_TENSOR; both operands in PSUM after a copy, divide by RECIPROCAL")
def tensor_tensor(
    trace: Trace, dst: Any, data1: Any, data2: Any, op: Any, *, dtype: Any = None, mask: Any = None, engine: Any = None
) -> Any:
    x, y, name = on_chip(data1, "tensor_tensor"), on_chip(data2, "tensor_tensor"), name_of_op(op)
    shape = arithmetic.shape_of(x, y)
    return _out(
        trace, dst, shape, dtype or x.dtype, lambda to: arithmetic.binary_into(trace, to, name, x, y), (x, y), mask=mask
    )


@call(_ISA, "instruction", "TENSOR_SCALAR; functions and divide in steps")
def tensor_scalar(
    trace: Trace,
    dst: Any,
    data: Any,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = None,
) -> Any:
    x = on_chip(data, "tensor_scalar")
    steps = [(name_of_op(op0), operand0, reverse0)]
    if op1 is not None:
        steps.append((name_of_op(op1), operand1, reverse1))

    def write(to: Array) -> None:
        _scalars(trace, to, x, steps)

    sources = [x, *(o for _, o, _ in steps if isinstance(o, Array))]
    return _out(trace, dst, x.shape, dtype or x.dtype, write, sources, mask=mask)


def _scalars(trace: Trace, dst: Array, x: Array, steps: list[tuple[str, Any, bool]]) -> None:
    """dst = (x op0 a) op1 b: in one instruction if the operators and axes are its own."""
    bits = any("bitwise" in name or "shift" in name for name, _, _ in steps)
    alike = all(name in ALU for name, _, _ in steps) and not moves.repeated(x)
    if alike and len(x.tile().dims) <= 4 and not (bits and len(steps) > 1 and not all("i" in n for n, _, _ in steps)):
        view = x.tile()
        a, b = [int(o) if bits else arithmetic.column(trace, o, view) for _, o, _ in steps] + [None] * (2 - len(steps))
        names = [ALU[name].name.lower() for name, _, _ in steps] + [None]
        turned = [r for _, _, r in steps] + [False]
        trace.k.vector.tensor_scalar(
            dst.tile(), view, str(names[0]), a, names[1], b, reverse0=bool(turned[0]), reverse1=bool(turned[1])
        )
        moves.written(dst)
        return
    trace.note("tensor_scalar with an operator that TENSOR_SCALAR has not: a step for each operator")
    for at, (name, operand, turned) in enumerate(steps):
        to = dst if at == len(steps) - 1 else trace.temp(x.shape, "float32")
        if operand is None or name in ("rsqrt", "sqrt", "reciprocal"):
            arithmetic.unary_into(trace, to, name, x)
        elif turned:
            arithmetic.binary_into(trace, to, name, operand, x)
        else:
            arithmetic.binary_into(trace, to, name, x, operand)
        x = to


@call(_ISA, "lowered", "TENSOR_SCALAR, TENSOR_REDUCE")
def tensor_scalar_reduce(
    trace: Trace, dst: Any, data: Any, op0: Any, operand0: Any, *, reduce_op: Any, reduce_res: Any,
    reverse0: bool = False, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    unmasked(mask, "tensor_scalar_reduce")
    x = on_chip(data, "tensor_scalar_reduce")
    trace.note("tensor_scalar_reduce: TENSOR_SCALAR, then TENSOR_REDUCE")
    to = trace.new(x.shape, dtype or x.dtype) if dst is None else need_dst(dst, "tensor_scalar_reduce")
    _scalars(trace, to, x, [(name_of_op(op0), operand0, reverse0)])
    over = [i for i, axis in enumerate(to.layout.axes) if not axis.par]
    arithmetic.reduce_into(trace, need_dst(reduce_res, "reduce_res"), name_of_op(reduce_op), to, over)
    return to if dst is None else None


@call(_ISA, "instruction", "SCALAR_TENSOR_TENSOR")
def scalar_tensor_tensor(
    trace: Trace, dst: Any, data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, *,
    reverse0: bool = False, reverse1: bool = False, dtype: Any = None, mask: Any = None, engine: Any = None,
) -> Any:  # fmt: skip
    x, y = on_chip(data, "scalar_tensor_tensor"), on_chip(operand1, "scalar_tensor_tensor")
    names = [name_of_op(op) for op in (op0, op1)]

    def write(to: Array) -> None:
        one = arithmetic.wide(trace, y, x.shape)
        if any(name not in ALU for name in names) or (x.space == one.space == Space.PSUM):
            raise KernelError(f"scalar_tensor_tensor takes the operators {', '.join(ALU)}, one operand in PSUM at most")
        alus = [ALU[name].name.lower() for name in names]
        a = arithmetic.column(trace, operand0, x.tile())
        trace.k.vector.scalar_tensor_tensor(
            to.tile(), x.tile(), alus[0], a, alus[1], one.tile(), reverse0=reverse0, reverse1=reverse1
        )
        moves.written(to)

    return _out(trace, dst, x.shape, dtype or x.dtype, write, (x, y), mask=mask)


@call(_ISA, "instruction", "TENSOR_REDUCE")
def tensor_reduce(
    trace: Trace, dst: Any, op: Any, data: Any, axis: Any, *, mask: Any = None, dtype: Any = None,
    negate: bool = False, keepdims: bool = False,
) -> Any:  # fmt: skip
    unmasked(mask, "tensor_reduce")
    x, name = on_chip(data, "tensor_reduce"), name_of_op(op)
    axes = axes_of(axis)
    shape = reduced(x.shape, axes, keepdims)
    return _out(
        trace, dst, shape, dtype or x.dtype, lambda to: arithmetic.reduce_into(trace, to, name, x, axes, negate), (x,)
    )


def axes_of(axis: Any) -> list[int]:
    """Axes of a reduction, given as one or several."""
    return [int(axis)] if isinstance(axis, (int, np.integer)) else [int(one) for one in axis]


def reduced(shape: Sequence[int], axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    """The shape that a reduction leaves; a column keeps its axis."""
    over = {axis % len(shape) for axis in axes}
    kept = tuple(1 if i in over else n for i, n in enumerate(shape) if keepdims or i not in over)
    return kept if len(kept) > 1 else (*kept, 1)


@call(_ISA, "instruction", "ACTIVATION, with its table; reduce_res by its accumulator")
def activation(
    trace: Trace, dst: Any, op: Any, data: Any, *, bias: Any = None, scale: Any = 1.0, reduce_op: Any = None,
    reduce_res: Any = None, reduce_cmd: Any = None, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    if reduce_op is not None:
        unmasked(mask, "activation with reduce_op")
    x, name = on_chip(data, "activation"), name_of_op(op)
    reduce = None if reduce_op is None else name_of_op(reduce_op)
    command = reduce_cmd or "reset_reduce"
    if reduce is not None and command not in ("reduce", "reset_reduce"):
        raise KernelError(f"activation takes reduce_cmd reset_reduce or reduce here, not {command}")

    def write(to: Array) -> None:
        if name in ("reciprocal", "cos"):
            raise KernelError(f"activation has no function {name} here; nl.{name} is lowered")
        add = 0.0 if bias is None else bias
        more: dict[str, Any] = {"reduce": reduce, "store": reduce_res, "command": command} if reduce else {}
        arithmetic.activate(trace, to, name, x, scale=scale, bias=add, **more)

    sources = [x, *(o for o in (bias, scale) if isinstance(o, Array))]
    if dst is None and reduce is not None:
        found = trace.new(x.shape, dtype or x.dtype)
        write(found)
        return found
    return _out(trace, dst, x.shape, dtype or x.dtype, write, sources, mask=mask)


@call(_ISA, "instruction", "ACTIVATION, with its accumulator")
def activation_reduce(
    trace: Trace, dst: Any, op: Any, data: Any, *, reduce_op: Any, reduce_res: Any, bias: Any = None, scale: Any = 1.0,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    more = {"dst": dst} if dst is not None else {}
    return activation(
        op=op,
        data=data,
        bias=bias,
        scale=scale,
        reduce_op=reduce_op,
        reduce_res=reduce_res,
        dtype=dtype,
        mask=mask,
        **more,
    )


@call(_ISA, "instruction", "RECIPROCAL")
def reciprocal(trace: Trace, dst: Any, data: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    x = on_chip(data, "reciprocal")
    write = lambda to: arithmetic.unary_into(trace, to, "reciprocal", x)  # noqa: E731
    return _out(trace, dst, x.shape, dtype or x.dtype, write, (x,), mask=mask)


@call(_ISA, "instruction", "MEMSET")
def memset(trace: Trace, *args: Any, dst: Any = None, shape: Any = None, value: Any = None, dtype: Any = None,
           mask: Any = None, engine: Any = None) -> Any:  # fmt: skip
    rest = list(args)
    if dst is None and rest and isinstance(rest[0], Array):
        dst = rest.pop(0)
    if dst is None and shape is None and rest:
        shape = rest.pop(0)
    if value is None and rest:
        value = rest.pop(0)
    kind = dtype if dtype is not None else (rest[0] if rest else "float32")
    if value is None or (dst is None and shape is None):
        raise KernelError("memset is written memset(dst, value), or memset(shape, value, dtype)")
    return _out(trace, dst, shape or (), kind, lambda to: moves.fill(trace, to, value), (), mask=mask)


@call(_ISA, "instruction", "TENSOR_SCAN")
def tensor_tensor_scan(
    trace: Trace, dst: Any, data0: Any, data1: Any, initial: Any, op0: Any, op1: Any, reverse0: bool = False,
    reverse1: bool = False, *, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    unmasked(mask, "tensor_tensor_scan")
    x, y = on_chip(data0, "tensor_tensor_scan"), on_chip(data1, "tensor_tensor_scan")
    names = [name_of_op(op) for op in (op0, op1)]

    def write(to: Array) -> None:
        a, b = x, arithmetic.wide(trace, y, x.shape)
        first = arithmetic.column(trace, initial, a.tile())
        alus = [ALU[name].name.lower() if name in ALU else name for name in names]
        trace.k.vector.scan(
            to.tile(), a.tile(), alus[0], alus[1], b.tile(), initial=first, reverse0=reverse0, reverse1=reverse1
        )
        moves.written(to)

    sources = [x, y, *([initial] if isinstance(initial, Array) else [])]
    return _out(trace, dst, x.shape, dtype or x.dtype, write, sources)


@call(_ISA, "instruction", "a DMA descriptor; with a conversion, or PSUM, an engine's copy beside it")
def dma_copy(
    trace: Trace, dst: Any, src: Any, *, mask: Any = None, dst_rmw_op: Any = None, dst_reduce_op: Any = None,
    oob_mode: Any = None, dge_mode: Any = None, engine: Any = None,
) -> None:  # fmt: skip
    unmasked(mask, "dma_copy")
    if dst_rmw_op is not None or dst_reduce_op is not None:
        raise KernelError("dma_copy adds nothing to what is there in this front end; tensor_tensor does")
    source = src if isinstance(src, Array) else None
    if source is None:
        raise KernelError(f"dma_copy copies an array, not {src!r}")
    moves.copy_into(trace, need_dst(dst, "dma_copy"), source)
