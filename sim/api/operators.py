"""Products, attention and the like on arrays: the programs of the workloads, with operands of one's own."""

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from firmware.own_makers import find_own
from firmware.workloads import find_workload
from sim.api.errors import as_errors
from sim.api.execute import execute
from sim.api.options import Options, settled
from sim.api.result import Result
from sim.api.tensor import Operand, operand

__all__ = ["attention", "ffn", "gemm", "layernorm", "moe", "softmax", "transpose"]


@as_errors()
def _run(workload: str, arrays: Mapping[str, Operand | None], params: Mapping[str, Any], options: Options) -> Result:
    """A workload on arrays; those that are None, and parameters, count as not given."""
    found = settled(options)
    given = {name: operand(name, value) for name, value in arrays.items() if value is not None}
    own, of = find_own(workload), find_workload(workload)
    settled_params = own.settle(of, {name: value for name, value in params.items() if value is not None}, given)
    program = own.build(of, of.configure(found.cfg, settled_params), settled_params, given, found.seed)
    return execute(program, found, workload, settled_params)


def gemm(
    a: Operand,
    b: Operand,
    *,
    dtype: str | None = None,
    out: Literal["fp32", "bf16", "fp16"] = "fp32",
    sparsity: str | None = None,
    resident: bool = False,
    rounding: Literal["fp32", "bf16", "stochastic"] = "fp32",
    **options: Unpack[Options],
) -> Result:
    """c [m, n] = a [m, k] b [k, n], accumulated in FP32.

    dtype: what both operands are rounded to: bf16, fp16, tf32, fp32 (four passes of the array), fp8, mxfp8, mxfp4,
        w4a8, nvfp4; by default the format of the arrays if both have the same, else fp32.
    out: format of c. sparsity: pattern by which a is pruned along k, as 4:16. resident: all operands are in SBUF before
        the array starts. rounding: of sums, whenever they are written to PSUM.
    options: Options. Errors: plexus.Error. Output: `c`.
    """
    params = {"dtype": dtype, "out": out, "sparsity": sparsity, "resident": resident, "rounding": rounding}
    return _run("gemm", {"a": a, "b": b}, params, options)


def softmax(x: Operand, *, dtype: str | None = None, online: int = 0, **options: Unpack[Options]) -> Result:
    """y [rows, columns] = softmax of each row of x.

    dtype: of x and y in memory, bf16, fp16 or fp32; by default that of x. online: columns of a block, 0 for one pass.
    options: Options. Errors: plexus.Error. Output: `y`.
    """
    return _run("softmax", {"x": x}, {"dtype": dtype, "online": online}, options)


def attention(
    q: Operand,
    k: Operand,
    v: Operand,
    *,
    causal: bool = False,
    window: int | None = None,
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
    return _run("attention", arrays, params, options)


def layernorm(
    x: Operand,
    gain: Operand | None = None,
    shift: Operand | None = None,
    *,
    rms: bool = False,
    dtype: str | None = None,
    **options: Unpack[Options],
) -> Result:
    """y [rows, columns] = (x - mean) / sqrt(variance + 1e-5) gain + shift, by row.

    rms: RMSNorm, x / sqrt(mean of squares + 1e-5) gain, without shift.
    gain, shift [columns]: FP32; 1 and 0 if not given. dtype: of x and y in memory, bf16, fp16 or fp32; by default that
    of x. options: Options. Errors: plexus.Error. Output: `y`.
    """
    return _run("layernorm", {"x": x, "gain": gain, "shift": shift}, {"rms": rms, "dtype": dtype}, options)


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
    return _run("ffn", arrays, {"activation": activation}, options)


def moe(
    x: Operand,
    gate: Operand,
    weights: Operand,
    *,
    top_k: int = 2,
    dtype: str | None = None,
    mode: Literal["tiles", "one", "whole"] = "tiles",
    route: Literal["scores", "even"] = "scores",
    router: Literal["vector", "gpsimd"] = "vector",
    **options: Unpack[Options],
) -> Result:
    """y [tokens, f] = sum over the top_k experts e of a token of softmax(scores)_e x weights_e, in FP32.

    x [tokens, d], gate [d, experts] (the scores are x gate, in BF16), weights [experts, d, f]; 1 to 8 experts. dtype:
    of x and weights in the experts, as of gemm without nvfp4; by default theirs if they have the same, else fp32. mode,
    route, router: docs/workloads.md; which tokens an expert gets, and the sum over experts, is the host's work.
    options: Options. Errors: plexus.Error. Output: `y`.
    """
    params = {"top_k": top_k, "dtype": dtype, "mode": mode, "route": route, "router": router}
    return _run("moe", {"x": x, "gate": gate, "weights": weights}, params, options)


def transpose(
    x: Operand, *, engine: Literal["tensor", "vector", "identity"] = "tensor", **options: Unpack[Options]
) -> Result:
    """y [columns, rows] = x^T, bit for bit, of bf16, fp16 or fp32 (float64 is rounded to it).

    engine: what transposes; `identity` is a product, of finite bf16 only. options: Options. Errors: plexus.Error.
    Output: `y`.
    """
    return _run("transpose", {"x": x}, {"engine": engine}, options)
