"""Programs of workloads from their parameters: random values, sizes that the host refuses."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from firmware.kernel import KernelError
from firmware.kernels.attention import attention
from firmware.kernels.decode import decode
from firmware.kernels.dma_copy import dma_copy
from firmware.kernels.embedding import embedding
from firmware.kernels.feed_forward import feed_forward
from firmware.kernels.gemm import gemm
from firmware.kernels.gemm_formats import GEMM_FORMATS
from firmware.kernels.gemm_sparse import sparse_gemm
from firmware.kernels.gpsimd_operators import random_operator, settle_program
from firmware.kernels.gpsimd_program import gpsimd_program, read_operands
from firmware.kernels.minilm import LONG_TEXT, minilm_projection
from firmware.kernels.minilm_model import minilm, text_encoder_layer
from firmware.kernels.moe import moe
from firmware.kernels.normalise import normalise
from firmware.kernels.softmax import softmax
from firmware.kernels.text_attention import text_attention
from firmware.kernels.transpose import transpose
from firmware.numbers import bits_dtype, element_bytes, encode
from firmware.program import Program
from firmware.views import MemoryFullError
from rtl.contract.config import Config

__all__ = [
    "held",
    "make_attention",
    "make_decode",
    "make_embedding",
    "make_dma",
    "make_ffn",
    "make_gemm",
    "make_gpsimd",
    "make_layer",
    "make_model",
    "make_moe",
    "make_norm",
    "make_projection",
    "make_softmax",
    "make_transpose",
    "random_attention",
    "settle_attention",
    "settle_gpsimd",
    "settle_moe",
]

RANDOM_ATTENTION = {
    "seq": 128, "head": 32, "causal": False, "queries": None, "kv_heads": None, "values": None, "window": None,
    "sinks": False, "seed": None,
}  # fmt: skip
"""Parameters that ask for random values, and what they are otherwise."""
HOST_VALUES_MAX = 1 << 27  # of A, B and C together: the host needs about 20 bytes for each


def held(workload: str, values: int, **sizes: int) -> None:
    """KernelError before so many values are drawn that the host cannot hold them."""
    if values > HOST_VALUES_MAX:
        named = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise KernelError(f"{workload} of {named} has {values} values; the host holds at most {HOST_VALUES_MAX}")


def make_gemm(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    m, k, n = params["m"], params["k"], params["n"]
    # Asked before random values of that size are drawn.
    fmt = GEMM_FORMATS[params["dtype"]]
    groups = m * k * element_bytes(fmt.a) + k * n * element_bytes(fmt.b)
    size = groups // fmt.elements + m * n * element_bytes(params["out"])
    if size > cfg.hbm.capacity_mib << 20:
        raise MemoryFullError(
            f"a product of m={m}, k={k}, n={n} needs {size} bytes of HBM, more than hbm.capacity_mib = "
            f"{cfg.hbm.capacity_mib} MiB"
        )
    held("a product", m * k + k * n + m * n, m=m, k=k, n=n)
    seed = seed if params["seed"] is None else params["seed"]
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((m, k), np.float32)
    b = rng.standard_normal((k, n), np.float32)
    settings = {name: params[name] for name in ("dtype", "out", "resident", "rounding", "loop")}
    settings["rounding_seed"] = seed % 2**32
    if params["sparsity"] is not None:
        return sparse_gemm(cfg, a, b, sparsity=params["sparsity"], **settings)
    return gemm(cfg, a, b, **settings)


def make_dma(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    return dma_copy(cfg, **params, seed=seed)


def make_projection(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    return minilm_projection(cfg, **params)


def make_layer(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    return text_encoder_layer(cfg, **params)


def make_model(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    return minilm(cfg, **params)


def settle_attention(params: dict[str, Any]) -> dict[str, Any]:
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


def random_attention(workload: str, params: Mapping[str, Any], rng: np.random.Generator) -> list[np.ndarray]:
    """Random normal float32 queries [heads, queries, head], keys [kv_heads, seq, head] and values [kv_heads, seq,
    values] of these sizes. Errors: KernelError if the host cannot hold them."""
    heads, seq, head = params["heads"], params["seq"], params["head"]
    queries, shared = params["queries"] or seq, params["kv_heads"] or heads
    values = params["values"] or head
    count = heads * queries * (head + values) + shared * seq * (head + values)
    held(workload, count, heads=heads, seq=seq, head=head)
    shapes = (heads, queries, head), (shared, seq, head), (shared, seq, values)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def make_attention(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    if params["text"] is not None:
        return text_attention(cfg, text=params["text"], heads=params["heads"])
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    q, k, v = random_attention("attention", params, rng)
    sinks = rng.standard_normal(params["heads"], np.float32) if params["sinks"] else None
    return attention(cfg, q, k, v, causal=params["causal"], window=params["window"], sinks=sinks)


def make_decode(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    heads, shared, head, past = (params[name] for name in ("heads", "kv_heads", "head", "past"))
    live = past if params["live"] is None else params["live"]
    held("decode", shared * past * 2 * head, heads=heads, past=past, head=head)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    shapes = (heads, head), (shared, live, head), (shared, live, head)
    q, k, v = (rng.standard_normal(shape, np.float32) for shape in shapes)
    return decode(cfg, q, k, v, past=past, dynamic=params["dynamic"], block=params["block"])


def make_softmax(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    rows = cfg.partitions if params["rows"] is None else params["rows"]
    columns = params["columns"]
    held("softmax", rows * columns, rows=rows, columns=columns)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    x = 4 * rng.standard_normal((rows, columns), np.float32)
    return softmax(cfg, x, dtype=params["dtype"], online=params["online"])


def make_norm(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    rows = cfg.partitions if params["rows"] is None else params["rows"]
    columns = params["columns"]
    held("layernorm", rows * columns, rows=rows, columns=columns)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    x = 1 + 2 * rng.standard_normal((rows, columns), np.float32)
    gain, shift = 1 + rng.standard_normal(columns, np.float32) / 4, rng.standard_normal(columns, np.float32)
    return normalise(cfg, x, gain, shift, rms=params["rms"], dtype=params["dtype"])


def make_ffn(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    tokens, width, hidden = params["tokens"], params["width"], params["hidden"]
    held("ffn", tokens * width + 2 * width * hidden, tokens=tokens, width=width, hidden=hidden)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    x = rng.standard_normal((tokens, width), np.float32)
    up = rng.standard_normal((hidden, width), np.float32) / np.float32(math.sqrt(width))
    down = rng.standard_normal((width, hidden), np.float32) / np.float32(math.sqrt(hidden))
    biases = (rng.standard_normal(n, np.float32) / 4 for n in (hidden, width))
    return feed_forward(cfg, x, up, next(biases), down, next(biases), activation=params["activation"])


def settle_moe(params: dict[str, Any]) -> dict[str, Any]:
    """Experts on row tiles, or, of a number of tokens that a run decides, on the whole array."""
    return params | {"mode": params["mode"] or ("whole" if params["dynamic"] else "tiles")}


def make_moe(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    experts, tokens, d, f = (params[name] for name in ("experts", "tokens", "d", "f"))
    held("moe", tokens * (d + f) * params["top_k"] + experts * d * f, experts=experts, tokens=tokens, d=d, f=f)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    x = rng.standard_normal((tokens, d), np.float32)
    gate = rng.standard_normal((d, experts), np.float32) / np.float32(math.sqrt(d))
    weights = rng.standard_normal((experts, d, f), np.float32) / np.float32(math.sqrt(d))
    settings = {n: params[n] for n in ("top_k", "dtype", "mode", "route", "scored", "router", "dynamic")}
    return moe(cfg, x, gate, weights, **settings)


def make_embedding(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    vocabulary, width, tokens = params["vocabulary"], params["width"], params["tokens"]
    held("embedding", (vocabulary + tokens) * width, vocabulary=vocabulary, width=width, tokens=tokens)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    table = rng.integers(0, 1 << 16, (vocabulary, width), np.uint16)
    return embedding(cfg, table, rng.integers(0, vocabulary, tokens), page=params["page"], seed=seed)


def make_transpose(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    rows, columns = params["rows"], params["columns"]
    held("transpose", rows * columns, rows=rows, columns=columns)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    dtype, engine = params["dtype"], params["engine"]
    if engine == "identity":  # no NaN, no infinity
        bits = encode(rng.standard_normal((rows, columns), np.float32), "bf16")
    else:
        width = bits_dtype(dtype)
        exponent = {"fp32": 0x7F80_0000, "bf16": 0x7F80, "fp16": 0x7C00}[dtype]
        bits = rng.integers(0, 1 << 8 * width.itemsize, (rows, columns), width)
        bits |= np.where(rng.random(bits.shape) < 0.25, width.type(exponent), width.type(0))  # NaN, with payloads
    return transpose(cfg, bits, dtype=dtype, engine=engine)


def settle_gpsimd(params: dict[str, Any]) -> dict[str, Any]:
    """A program of the user, or an operator of the library with its own parameters."""
    given = {name for name, value in params.items() if value is not None}
    own = ("elf", "in", "entry", "cores", "watchdog", "out")
    if params["program"] is None:
        if extra := sorted(given - set(own)):
            raise KernelError(f"{extra[0]} belongs to an operator of the library: program=NAME says which")
        return {name: params[name] for name in own}
    if extra := sorted(given & set(own[:-1])):
        raise KernelError(f"program and {extra[0]} exclude each other: {extra[0]} is for a program of yours, elf=FILE")
    return settle_program(params, given)


def make_gpsimd(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    if "program" in params:
        program = random_operator(cfg, params, seed)
    elif params["elf"]:
        program = _program_of_elf(cfg, params)
    else:
        raise KernelError(
            "gpsimd runs a program of yours: elf=FILE, as plexus firmware build makes it; or an operator of the "
            "library: program=NAME"
        )
    if params["out"]:
        program.out = out = Path(params["out"])
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise KernelError(f"out={out} must be a file in a folder that is there")
        if not any(tensor.output for tensor in program.tensors.values()):
            raise KernelError(
                f"there is nothing to write to out={out}: neither dst in the arrays given with in=, nor "
                f"begin_signature and end_signature in {params['elf']}"
            )
    return program


def _program_of_elf(cfg: Config, params: Mapping[str, Any]) -> Program:
    operands = read_operands(Path(params["in"]), cfg.partitions) if params["in"] else {}
    return gpsimd_program(
        cfg,
        Path(params["elf"]),
        operands,
        entry=params["entry"],
        cores=params["cores"],
        watchdog_cycles=params["watchdog"] or 0,
    )
