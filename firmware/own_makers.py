"""Programs of workloads from arrays of the user, by the name of the workload, and what their results are."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from firmware.host_array import HostArray
from firmware.kernels.attention import attention
from firmware.kernels.elementwise import ELEMENTWISE, elementwise
from firmware.kernels.feed_forward import feed_forward
from firmware.kernels.gated_ffn import gated_ffn
from firmware.kernels.gemm import gemm
from firmware.kernels.gemm_sparse import sparse_gemm
from firmware.kernels.moe import moe
from firmware.kernels.normalise import normalise
from firmware.kernels.rope import rope
from firmware.kernels.softmax import softmax
from firmware.kernels.transpose import transpose
from firmware.own_arrays import OwnArrays
from firmware.program import Program
from firmware.views import KernelError
from rtl.contract.config import Config

__all__ = ["OWN_ARRAYS", "find_own"]

Params = Mapping[str, Any]
Arrays = Mapping[str, HostArray]


def _gives(program: Program, name: str, dtype: str, of: Callable[[dict[str, np.ndarray]], np.ndarray]) -> Program:
    program.results = lambda outputs: {name: HostArray(of(outputs), dtype)}
    return program


def _gemm(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    settings = {name: params[name] for name in ("dtype", "out", "resident", "rounding", "loop")}
    settings["rounding_seed"] = (seed if params["seed"] is None else params["seed"]) % 2**32
    a, b = arrays["a"].values, arrays["b"].values
    if params["sparsity"] is not None:
        program = sparse_gemm(cfg, a, b, sparsity=params["sparsity"], **settings)
    else:
        program = gemm(cfg, a, b, **settings)
    turned = "c_t" in program.tensors
    return _gives(program, "c", params["out"], lambda outputs: outputs["c_t"].T if turned else outputs["c"])


def _attention(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    sinks = arrays["sinks"].values if "sinks" in arrays else None
    if params["sinks"] and sinks is None:
        raise KernelError("sinks=true is for random values; own ones are an array sinks [heads]")
    q, k, v = (arrays[name].values for name in ("q", "k", "v"))
    program = attention(cfg, q, k, v, causal=params["causal"], window=params["window"], sinks=sinks)
    shape = (*q.shape[:2], v.shape[2])  # also of single queries, which leave by groups
    return _gives(program, "y", "fp32", lambda outputs: outputs["context"].reshape(shape))


def _softmax(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    program = softmax(cfg, arrays["x"].values, dtype=params["dtype"], online=params["online"])
    return _gives(program, "y", params["dtype"], lambda outputs: outputs["y"])


def _norm(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    if params["rms"] and "shift" in arrays:
        raise KernelError("rms=true has no shift; leave that array out")
    width = params["columns"]
    gain, shift = (
        arrays[name].values if name in arrays else np.full(width, default, np.float32)
        for name, default in (("gain", 1), ("shift", 0))
    )
    program = normalise(cfg, arrays["x"].values, gain, shift, rms=params["rms"], dtype=params["dtype"])
    return _gives(program, "y", params["dtype"], lambda outputs: outputs["y"])


def _ffn(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    biases = [
        arrays[name].values if name in arrays else np.zeros(params[size], np.float32)
        for name, size in (("up_bias", "hidden"), ("down_bias", "width"))
    ]
    x, up, down = (arrays[name].values for name in ("x", "up", "down"))
    program = feed_forward(cfg, x, up, biases[0], down, biases[1], activation=params["activation"])
    return _gives(program, "y", "fp32", lambda outputs: outputs["y"])


def _gated_ffn(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    program = gated_ffn(cfg, *(arrays[name].values for name in ("x", "gate", "up", "down")))
    return _gives(program, "y", "fp32", lambda outputs: outputs["y"])


def _rope(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    x = arrays["x"].values
    program = rope(cfg, x, first=params["first"], theta=params["theta"], work=params["work"])
    return _gives(program, "y", "bf16", lambda outputs: outputs["y"].reshape(x.shape))


def _elementwise(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    op = params["op"]
    if ELEMENTWISE[op].two != ("b" in arrays):
        raise KernelError(f"op={op} takes {'the arrays a and b' if ELEMENTWISE[op].two else 'the array a alone'}")
    a = arrays["a"].values
    program = elementwise(cfg, a, arrays["b"].values if "b" in arrays else a, op=op)
    return _gives(program, "y", "bf16", lambda outputs: outputs["y"].reshape(a.shape))


def _moe(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    settings = {name: params[name] for name in ("top_k", "dtype", "mode", "route", "scored", "router")}
    return moe(cfg, *(arrays[name].values for name in ("x", "gate", "weights")), **settings)


def _transpose(cfg: Config, params: Params, arrays: Arrays, seed: int) -> Program:
    x, dtype = arrays["x"], params["dtype"]
    if x.dtype != dtype:
        raise KernelError(f"transpose moves the bits of bf16, fp16 or fp32 as they are; x is {x.dtype}, not {dtype}")
    return _gives(transpose(cfg, x.bits, dtype=dtype, engine=params["engine"]), "y", dtype, lambda out: out["y"])


_NORMED = {"x": ("rows", "columns"), "gain": ("columns",), "shift": ("columns",)}
_FEED_FORWARD = {"x": ("tokens", "width"), "up": ("hidden", "width"), "down": ("width", "hidden")}

OWN_ARRAYS: dict[str, OwnArrays] = {
    "gemm": OwnArrays(axes={"a": ("m", "k"), "b": ("k", "n")}, maker=_gemm, format_of=("a", "b")),
    "attention": OwnArrays(
        axes={
            "q": ("heads", "queries", "head"),
            "k": ("kv_heads", "seq", "head"),
            "v": ("kv_heads", "seq", "values"),
            "sinks": ("heads",),
        },
        maker=_attention,
        without={"text": "a text has a model's queries, keys and values"},
        optional=frozenset(["sinks"]),
    ),
    "softmax": OwnArrays(axes={"x": ("rows", "columns")}, maker=_softmax, format_of=("x",)),
    "layernorm": OwnArrays(axes=_NORMED, maker=_norm, optional=frozenset(["gain", "shift"]), format_of=("x",)),
    "ffn": OwnArrays(
        axes=_FEED_FORWARD | {"up_bias": ("hidden",), "down_bias": ("width",)},
        maker=_ffn,
        optional=frozenset(["up_bias", "down_bias"]),
    ),
    "gated-ffn": OwnArrays(axes=_FEED_FORWARD | {"gate": ("hidden", "width")}, maker=_gated_ffn),
    "rope": OwnArrays(axes={"x": ("tokens", "heads", "head")}, maker=_rope),
    "elementwise": OwnArrays(
        axes={"a": ("rows", "columns"), "b": ("rows", "columns")}, maker=_elementwise, optional=frozenset(["b"])
    ),
    "moe": OwnArrays(
        axes={"x": ("tokens", "d"), "gate": ("d", "experts"), "weights": ("experts", "d", "f")},
        maker=_moe,
        format_of=("x", "weights"),
    ),
    "transpose": OwnArrays(axes={"x": ("rows", "columns")}, maker=_transpose, format_of=("x",)),
}
"""Of each workload that takes them."""


def find_own(workload: str) -> OwnArrays:
    """How this workload takes arrays. KernelError lists those that do."""
    if workload not in OWN_ARRAYS:
        raise KernelError(f"{workload} takes no arrays; those that do are {', '.join(OWN_ARRAYS)}")
    return OWN_ARRAYS[workload]
