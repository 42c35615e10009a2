"""Products, attention and the like on arrays: the programs of the workloads, with operands of one's own."""

from typing import Literal, SupportsIndex, Unpack

import numpy as np
import numpy.typing as npt

from sim.api.options import Options
from sim.api.result import Result
from sim.api.tensor import Operand
from sim.api.workload_call import run_workload

__all__ = ["attention", "ffn", "gemm", "layernorm", "moe", "softmax", "transpose"]


def gemm(
    a: Operand,
    b: Operand,
    *,
    dtype: npt.DTypeLike | None = None,
    out: npt.DTypeLike = "fp32",
    sparsity: str | None = None,
    resident: bool = False,
    rounding: Literal["fp32", "bf16", "stochastic"] = "fp32",
    **options: Unpack[Options],
) -> Result:
    """c [m, n] = a [m, k] b [k, n], accumulated in FP32.

    dtype: what both operands are rounded to: bf16, fp16, tf32, fp32 (four passes of the array), fp8, mxfp8, mxfp4,
        w4a8, nvfp4, or a dtype of NumPy; by default the format of the arrays if both have the same and it is one of
        these (of FP8: e4m3fn), else fp32. In fp32 the passes take numbers apart: an infinity, a number above 3.402e38
        or a sum that overflows may give a NaN.
    out: format of c, fp32, bf16 or fp16. sparsity: pattern by which a is pruned along k, as 4:16. resident: all
        operands are in SBUF before the array starts. rounding: of sums, whenever they are written to PSUM.
    options: Options. Errors: plexus.Error. Output: `c`.
    """
    params = {"dtype": dtype, "out": out, "sparsity": sparsity, "resident": resident, "rounding": rounding}
    return run_workload("gemm", {"a": a, "b": b}, params, options)


def softmax(x: Operand, *, dtype: npt.DTypeLike | None = None, online: int = 0, **options: Unpack[Options]) -> Result:
    """y [rows, columns] = softmax of each row of x.

    dtype: of x and y in memory, bf16, fp16 or fp32; by default that of x, fp32 if it is FP8. online: columns of a
        block, 0 for one pass.
    options: Options. Errors: plexus.Error. Output: `y`.
    """
    return run_workload("softmax", {"x": x}, {"dtype": dtype, "online": online}, options)


def attention(
    q: Operand,
    k: Operand,
    v: Operand,
    *,
    causal: bool | np.bool = False,
    window: SupportsIndex | None = None,
    sinks: Operand | None = None,
    **options: Unpack[Options],
) -> Result:
    """y [heads, queries, values] = softmax(q k^T / sqrt(head)) v for each head, in FP32.

    q [heads, queries, head], k [kv_heads, keys, head], v [kv_heads, keys, values], rounded to BF16; heads is a multiple
    of kv_heads, and successive heads share one of keys and values. causal: the queries are the last tokens, and each
    sees the keys up to its own place; window: of these only so many. sinks [heads]: a logit beside a head's scores.
    options: Options. Errors: plexus.Error. Output: `y`.
    """
    arrays = {"q": q, "k": k, "v": v, "sinks": sinks}
    params = {"causal": causal, "window": window, "sinks": sinks is not None}
    return run_workload("attention", arrays, params, options)


def layernorm(
    x: Operand,
    gain: Operand | None = None,
    shift: Operand | None = None,
    *,
    rms: bool = False,
    dtype: npt.DTypeLike | None = None,
    **options: Unpack[Options],
) -> Result:
    """y [rows, columns] = (x - mean) / sqrt(variance + 1e-5) gain + shift, by row.

    rms: RMSNorm, x / sqrt(mean of squares + 1e-5) gain, without shift.
    gain, shift [columns]: FP32; 1 and 0 if not given. dtype: of x and y in memory, bf16, fp16 or fp32; by default that
    of x, fp32 if it is FP8. options: Options. Errors: plexus.Error. Output: `y`.
    """
    return run_workload("layernorm", {"x": x, "gain": gain, "shift": shift}, {"rms": rms, "dtype": dtype}, options)


def ffn(
    x: Operand,
    up: Operand,
    down: Operand,
    *,
    up_bias: Operand | None = None,
    down_bias: Operand | None = None,
    activation: Literal["gelu", "gelu_tanh", "silu", "relu"] = "gelu",
    **options: Unpack[Options],
) -> Result:
    """y [tokens, width] = activation(x up^T + up_bias) down^T + down_bias, in FP32.

    x [tokens, width], up [hidden, width], down [width, hidden], rounded to BF16; biases [hidden] and [width] in FP32,
    0 if not given. options: Options. Errors: plexus.Error. Output: `y`.
    """
    arrays = {"x": x, "up": up, "down": down, "up_bias": up_bias, "down_bias": down_bias}
    return run_workload("ffn", arrays, {"activation": activation}, options)


def moe(
    x: Operand,
    gate: Operand,
    weights: Operand,
    *,
    top_k: SupportsIndex = 2,
    dtype: npt.DTypeLike | None = None,
    mode: Literal["tiles", "one", "whole"] = "tiles",
    route: Literal["scores", "even"] = "scores",
    router: Literal["vector", "gpsimd"] = "vector",
    **options: Unpack[Options],
) -> Result:
    """y [tokens, f] = sum over the top_k experts e of a token of share_e x weights_e, in FP32; the shares of a token
    are the softmax of the scores of these experts alone, so they add up to 1.

    x [tokens, d], gate [d, experts] (the scores are x gate, in BF16), weights [experts, d, f]; 1 to 8 experts. dtype:
    of x and weights in the experts, as of gemm without nvfp4; by default as there. route: "even" gives token t the
    experts t top_k, t top_k + 1, ... modulo their number, whatever their scores, and shares by these. mode, router:
    docs/workloads.md (mode="whole" for an array without row groups, as that of tiny); which tokens an expert gets, and
    the sum over experts, is the host's work.
    options: Options. Errors: plexus.Error. Output: `y`.
    """
    params = {"top_k": top_k, "dtype": dtype, "mode": mode, "route": route, "router": router}
    return run_workload("moe", {"x": x, "gate": gate, "weights": weights}, params, options)


def transpose(
    x: Operand, *, engine: Literal["tensor", "vector", "identity"] = "tensor", **options: Unpack[Options]
) -> Result:
    """y [columns, rows] = x^T, bit for bit, of bf16, fp16 or fp32 (float64 is rounded to it).

    engine: what transposes; `identity` is a product, of finite bf16 only, and leaves -0 as +0. options: Options.
    Errors: plexus.Error. Output: `y`.
    """
    return run_workload("transpose", {"x": x}, {"engine": engine}, options)
