"""Matrix products and attention."""

import math

from firmware.graph.ir import Value
from sim.torch.errors import Unsupported
from sim.torch.lowering.bounds import PRODUCT
from sim.torch.lowering.builder import Builder
from sim.torch.lowering.registry import lower

__all__: list[str] = []

_HIDDEN = -1e30
"""Added to scores that a mask of truth values leaves out."""


def _floats(*values: Value) -> None:
    if any(v.dtype not in ("fp32", "bf16", "fp16") for v in values):
        raise Unsupported("products are of floating point numbers")


@lower("aten.mm.default aten.bmm.default", "matmul", PRODUCT)
def mm(b: Builder, x: Value, y: Value) -> Value:
    """Of two or three axes."""
    _floats(x, y)
    return b.matmul(x, y)


@lower("aten.mv.default aten.dot.default", "reshape, matmul", PRODUCT)
def mv(b: Builder, x: Value, y: Value) -> Value:
    """With a vector."""
    _floats(x, y)
    rows = x if len(x.shape) == 2 else b.reshape(x, (1, x.shape[0]))
    return b.reshape(b.matmul(rows, b.reshape(y, (y.shape[0], 1))), b.shape)


@lower("aten.addmm.default aten.baddbmm.default", "matmul with its bias", PRODUCT)
def addmm(b: Builder, bias: Value, x: Value, y: Value, beta: float = 1, alpha: float = 1) -> Value:
    """beta bias + alpha x y; a bias that is no row is added by itself."""
    _floats(bias, x, y)
    columns = y.shape[-1]
    if beta == 1 and alpha == 1 and bias.shape == (columns,):
        return b.matmul(x, y, b.cast(bias, "fp32"), b.dtype)
    product = b.matmul(x, y, dtype="fp32")
    if alpha != 1:
        product = b.binary("multiply", product, alpha)
    if beta == 0:
        return b.cast(product, b.dtype)
    added = b.cast(bias, "fp32")
    added = added if beta == 1 else b.binary("multiply", added, beta)
    return b.cast(b.binary("add", product, added), b.dtype)


@lower("plexus.attention.default", "attention, with masks, causal, of grouped heads", PRODUCT)
def attention(
    b: Builder,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None,
    causal: bool,
    scale: float | None,
    grouped: bool,
) -> Value:
    """torch's scaled_dot_product_attention."""
    _floats(q, k, v)
    whole = [_four(b, x) for x in (q, k, v)]
    if len({x.shape[0] for x in whole}) > 1:
        raise Unsupported("its batches are broadcast")
    heads = [x.shape[1] for x in whole]
    if b.shape[:-1] != q.shape[:-1] or heads[1] != heads[2] or heads[0] % heads[1]:
        raise Unsupported("its heads are broadcast")
    inputs = {"q": whole[0], "k": whole[1], "v": whole[2]}
    if mask is not None:
        if mask.dtype == "uint8":
            mask = b.node("where", {"condition": mask}, mask.shape, "fp32", scalar_a=0.0, scalar_b=_HIDDEN)
        rank = len(b.shape)
        if rank > 4:  # its batches become one axis
            mask = b.reshape(mask, (1,) * (rank - len(mask.shape)) + mask.shape)
            mask = b.expand(mask, (*q.shape[:-3], *mask.shape[-3:]))
        inputs["mask"] = _four(b, b.cast(mask, "fp32"))
    y = b.node(
        "attention",
        inputs,
        (*whole[0].shape[:3], v.shape[-1]),
        q.dtype,
        scale=1 / math.sqrt(q.shape[-1]) if scale is None else float(scale),
        causal=causal,
        kind=b.kind(q, k, v),
        heads_last=(),
    )
    return b.reshape(y, b.shape)


def _four(b: Builder, x: Value) -> Value:
    """With four axes: those before them are batches, those that lack are 1."""
    if len(x.shape) <= 4:
        return b.reshape(x, (1,) * (4 - len(x.shape)) + x.shape)
    return b.reshape(x, (math.prod(x.shape[:-3]), *x.shape[-3:]))
