"""Workloads by name: their parameters, how their program is built, what they measure of a result."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from firmware.kernel import KernelError
from firmware.kernels.attention import attention
from firmware.kernels.dma_copy import DIRECTIONS, dma_copy
from firmware.kernels.feed_forward import ACTIVATIONS, feed_forward
from firmware.kernels.gemm import gemm
from firmware.kernels.minilm import DEFAULT_TEXT, LONG_TEXT, minilm_projection
from firmware.kernels.minilm_model import minilm, text_encoder_layer
from firmware.kernels.normalise import normalise
from firmware.kernels.softmax import softmax
from firmware.kernels.text_attention import text_attention
from firmware.kernels.transpose import ENGINES, transpose
from firmware.numbers import element_bytes
from firmware.program import Program
from firmware.workload import Param, Workload
from rtl.contract.config import Config

__all__ = ["WORKLOADS", "Param", "Workload", "find_workload"]

SIZE_MAX = 1 << 20
RANDOM_ATTENTION = {"seq": 128, "head": 32, "causal": False, "seed": None}
"""Parameters that ask for random values, and what they are otherwise."""
HOST_VALUES_MAX = 1 << 27  # of A, B and C together: the host needs about 20 bytes for each


def _size(default: int | None, doc: str) -> Param:
    return Param(type=int, default=default, doc=doc, minimum=1, maximum=SIZE_MAX)


def _held(workload: str, values: int, **sizes: int) -> None:
    """KernelError before so many values are drawn that the host cannot hold them."""
    if values > HOST_VALUES_MAX:
        named = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise KernelError(f"{workload} of {named} has {values} values; the host holds at most {HOST_VALUES_MAX}")


def _make_gemm(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    m, k, n = params["m"], params["k"], params["n"]
    # Asked before random values of that size are drawn.
    size = (m * k + k * n) * element_bytes(params["dtype"]) + m * n * element_bytes(params["out"])
    if size > cfg.hbm.capacity_mib << 20:
        raise KernelError(
            f"a product of m={m}, k={k}, n={n} needs {size} bytes of HBM, more than hbm.capacity_mib = "
            f"{cfg.hbm.capacity_mib} MiB"
        )
    _held("a product", m * k + k * n + m * n, m=m, k=k, n=n)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    a = rng.standard_normal((m, k), np.float32)
    b = rng.standard_normal((k, n), np.float32)
    return gemm(cfg, a, b, dtype=params["dtype"], out=params["out"], resident=params["resident"])


def _make_dma(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    return dma_copy(cfg, **params, seed=seed)


def _make_projection(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    return minilm_projection(cfg, **params)


def _make_layer(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    return text_encoder_layer(cfg, **params)


def _make_model(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    return minilm(cfg, **params)


def _settle_attention(params: dict[str, Any]) -> dict[str, Any]:
    """A text, unless something says that the values are random."""
    values = [name for name in RANDOM_ATTENTION if params[name] is not None]
    if params["text"] is not None and values:
        raise KernelError(
            f"text and {values[0]} exclude each other: a text has a model's queries, keys and values, "
            f"{', '.join(RANDOM_ATTENTION)} belong to random ones"
        )
    settled = params | {"heads": params["heads"] or 1}
    if not values:
        return settled | {"text": LONG_TEXT if params["text"] is None else params["text"]}
    return {name: RANDOM_ATTENTION.get(name) if value is None else value for name, value in settled.items()}


def _make_attention(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    if params["text"] is not None:
        return text_attention(cfg, text=params["text"], heads=params["heads"])
    shape = params["heads"], params["seq"], params["head"]
    _held("attention", 3 * math.prod(shape), heads=shape[0], seq=shape[1], head=shape[2])
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    q, k, v = (rng.standard_normal(shape, np.float32) for _ in range(3))
    return attention(cfg, q, k, v, causal=params["causal"])


def _make_softmax(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    rows = cfg.partitions if params["rows"] is None else params["rows"]
    columns = params["columns"]
    _held("softmax", rows * columns, rows=rows, columns=columns)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    x = 4 * rng.standard_normal((rows, columns), np.float32)
    return softmax(cfg, x, dtype=params["dtype"], online=params["online"])


def _make_norm(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    rows = cfg.partitions if params["rows"] is None else params["rows"]
    columns = params["columns"]
    _held("layernorm", rows * columns, rows=rows, columns=columns)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    x = 1 + 2 * rng.standard_normal((rows, columns), np.float32)
    gain, shift = 1 + rng.standard_normal(columns, np.float32) / 4, rng.standard_normal(columns, np.float32)
    return normalise(cfg, x, gain, shift, rms=params["rms"], dtype=params["dtype"])


def _make_ffn(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    tokens, width, hidden = params["tokens"], params["width"], params["hidden"]
    _held("ffn", tokens * width + 2 * width * hidden, tokens=tokens, width=width, hidden=hidden)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    x = rng.standard_normal((tokens, width), np.float32)
    up = rng.standard_normal((hidden, width), np.float32) / np.float32(math.sqrt(width))
    down = rng.standard_normal((width, hidden), np.float32) / np.float32(math.sqrt(hidden))
    biases = (rng.standard_normal(n, np.float32) / 4 for n in (hidden, width))
    return feed_forward(cfg, x, up, next(biases), down, next(biases), activation=params["activation"])


def _make_transpose(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    rows, columns = params["rows"], params["columns"]
    _held("transpose", rows * columns, rows=rows, columns=columns)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    return transpose(cfg, rng.standard_normal((rows, columns), np.float32), engine=params["engine"])


_SEED = Param(type=int, default=None, doc="of the values; the run's seed if not given", minimum=0)
_TEXT = Param(type=str, default=DEFAULT_TEXT, doc="what is tokenised")
_ROWS = Param(type=int, default=None, doc="rows; one a partition if not given", minimum=1, maximum=SIZE_MAX)
_DTYPE = Param(type=str, default="bf16", doc="format of rows and result", choices=("bf16", "fp32", "fp16"))
_RESIDENT = Param(type=bool, default=False, doc="load all operands into SBUF before the array starts")

WORKLOADS: dict[str, Workload] = {
    w.name: w
    for w in (
        Workload(
            name="gemm",
            doc="C[M, N] = A[M, K] B[K, N] of random normal values, any size",
            params={
                "m": _size(128, "rows of A and C"),
                "k": _size(128, "columns of A, rows of B"),
                "n": _size(128, "columns of B and C"),
                "dtype": Param(type=str, default="bf16", doc="format of A and B", choices=("bf16", "fp16")),
                "out": Param(type=str, default="fp32", doc="format of C", choices=("fp32", "bf16", "fp16")),
                "resident": _RESIDENT,
                "seed": _SEED,
            },
            maker=_make_gemm,
        ),
        Workload(
            name="dma",
            doc="rows between HBM and SBUF: what the movers and HBM can do",
            params={
                "rows": Param(
                    type=int,
                    default=None,
                    doc="rows to move; half of SBUF if not given",
                    minimum=1,
                    maximum=SIZE_MAX,
                ),
                "row_bytes": Param(type=int, default=512, doc="contiguous bytes of a row", minimum=1, maximum=1 << 18),
                "direction": Param(type=str, default="read", doc="where to", choices=DIRECTIONS),
            },
            maker=_make_dma,
        ),
        Workload(
            name="attention",
            doc="attention in layer 0 of all-MiniLM-L6-v2 for a real text, or of random normal Q, K, V",
            params={
                "text": Param(type=str, default=None, doc="what is tokenised; not with seq, head, causal or seed"),
                "heads": _size(None, "heads, the first ones of the layer; 1 if not given"),
                "seq": _size(None, "tokens of random values; 128 if only others are given"),
                "head": _size(None, "dimensions of a head of random values; 32 if only others are given"),
                "causal": Param(type=bool, default=None, doc="random values; a query sees the keys up to its own"),
                "seed": _SEED,
            },
            settle=_settle_attention,
            maker=_make_attention,
        ),
        Workload(
            name="softmax",
            doc="softmax of rows of random normal values, rows on partitions",
            params={
                "rows": _ROWS,
                "columns": _size(512, "elements of a row"),
                "dtype": _DTYPE,
                "online": Param(
                    type=int, default=0, doc="columns of a block, 0 for one pass", minimum=0, maximum=SIZE_MAX
                ),
                "seed": _SEED,
            },
            maker=_make_softmax,
        ),
        Workload(
            name="layernorm",
            doc="LayerNorm or RMSNorm of rows of random normal values, rows on partitions",
            params={
                "rows": _ROWS,
                "columns": _size(512, "elements of a row"),
                "dtype": _DTYPE,
                "rms": Param(type=bool, default=False, doc="RMSNorm: no mean and no shift"),
                "seed": _SEED,
            },
            maker=_make_norm,
        ),
        Workload(
            name="ffn",
            doc="a feed-forward block of random weights: two linear layers with biases and a function between them",
            params={
                "tokens": _size(128, "rows of x"),
                "width": _size(128, "elements of a row"),
                "hidden": _size(512, "elements between the layers"),
                "activation": Param(
                    type=str, default="gelu", doc="the function between the layers", choices=tuple(ACTIVATIONS)
                ),
                "seed": _SEED,
            },
            maker=_make_ffn,
        ),
        Workload(
            name="transpose",
            doc="y = x^T of random normal values, by the array or by the vector engine",
            params={
                "rows": _size(128, "rows of x"),
                "columns": _size(128, "columns of x"),
                "engine": Param(type=str, default="tensor", doc="what transposes", choices=ENGINES),
                "seed": _SEED,
            },
            maker=_make_transpose,
        ),
        Workload(
            name="encoder-layer",
            doc="the whole of layer 0 of all-MiniLM-L6-v2 for a real text",
            params={"text": _TEXT},
            maker=_make_layer,
        ),
        Workload(
            name="minilm",
            doc="all of all-MiniLM-L6-v2: a text in, its embedding out",
            params={"text": _TEXT},
            maker=_make_model,
        ),
        Workload(
            name="minilm-projection",
            doc="query, key and value projections of layer 0 of all-MiniLM-L6-v2 for a real text",
            params={
                "text": _TEXT,
                "resident": _RESIDENT,
            },
            maker=_make_projection,
        ),
    )
}


def find_workload(name: str) -> Workload:
    """A workload by name. KernelError lists them."""
    if name not in WORKLOADS:
        raise KernelError(f"there is no workload {name!r}; there are {', '.join(WORKLOADS)}")
    return WORKLOADS[name]
