"""Workloads by name: their parameters, how their program is built, what they measure of a result."""

from firmware.engines.tensor import ROUNDINGS
from firmware.gpsimd_params import OPERATOR_PARAMS
from firmware.kernel import KernelError
from firmware.kernels.dma_classes import ROW_BYTES_MAX, of_classes
from firmware.kernels.dma_copy import ADDS, DIRECTIONS
from firmware.kernels.dma_indices import INDICES
from firmware.kernels.feed_forward import ACTIVATIONS
from firmware.kernels.gemm_formats import GEMM_FORMATS
from firmware.kernels.minilm import DEFAULT_TEXT
from firmware.kernels.moe import EXPERTS_MAX, MODES, MOE_FORMATS, ROUTERS, ROUTES
from firmware.kernels.transpose import ENGINES, TRANSPOSED_FORMATS
from firmware.layer_parts import LAYER_PARTS
from firmware.makers import (
    make_attention,
    make_decode,
    make_dma,
    make_embedding,
    make_ffn,
    make_gemm,
    make_gpsimd,
    make_layer,
    make_model,
    make_moe,
    make_norm,
    make_projection,
    make_softmax,
    make_transpose,
    settle_attention,
    settle_gpsimd,
    settle_moe,
)
from firmware.params import DTYPE, ROWS, SEED, SIZE_MAX, size
from firmware.workload import Param, Workload
from rtl.contract.gpsimd import CORES_MAX
from rtl.contract.roles import Uses
from rtl.contract.sparsity import PATTERNS

__all__ = ["WORKLOADS", "Param", "Workload", "find_workload"]

_TEXT = Param(type=str, default=DEFAULT_TEXT, doc="what is tokenised")
_RESIDENT = Param(type=bool, default=False, doc="load all operands into SBUF before the array starts")

WORKLOADS: dict[str, Workload] = {
    w.name: w
    for w in (
        Workload(
            name="gemm",
            doc="C[M, N] = A[M, K] B[K, N] of random normal values, any size",
            params={
                "m": size(128, "rows of A and C"),
                "k": size(128, "columns of A, rows of B"),
                "n": size(128, "columns of B and C"),
                "dtype": Param(type=str, default="bf16", doc="format of A and B", choices=tuple(GEMM_FORMATS)),
                "out": Param(type=str, default="fp32", doc="format of C", choices=("fp32", "bf16", "fp16")),
                "sparsity": Param(
                    type=str,
                    default=None,
                    doc="numbers of A that are kept of each group along K; none if not given",
                    choices=tuple(PATTERNS),
                ),
                "resident": _RESIDENT,
                "rounding": Param(type=str, default="fp32", doc="of sums written to PSUM", choices=tuple(ROUNDINGS)),
                "loop": Param(type=bool, default=False, doc="queues are loops of few words, tiles alike"),
                "seed": SEED,
            },
            maker=make_gemm,
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
                "row_bytes": Param(
                    type=int,
                    default=None,
                    doc="contiguous bytes of a row; 512 if not given, fewer where classes have no room for them",
                    minimum=1,
                    maximum=ROW_BYTES_MAX,
                ),
                "direction": Param(type=str, default="read", doc="where to", choices=DIRECTIONS),
                "add": Param(
                    type=str,
                    default=None,
                    doc="format in which rows are added to what is in SBUF; copied if not given",
                    choices=tuple(ADDS),
                ),
                "classes": Param(
                    type=str, default=None, doc="weights of 2 to 4 traffic classes, as 8:4:2:1; one class if not given"
                ),
                "strict": Param(type=int, default=None, doc="the class that goes before the others; -1 none"),
                "descriptors": Param(
                    type=int,
                    default=None,
                    doc="rows, of a descriptor of one ring each; few large ones if not given",
                    minimum=1,
                    maximum=1 << 14,
                ),
                "indices": Param(
                    type=str,
                    default=None,
                    doc="rows in random order, which indices in SBUF choose, down the partitions or along one",
                    choices=INDICES,
                ),
            },
            maker=make_dma,
            configure=lambda cfg, params: of_classes(cfg, params["classes"], params["strict"]),
            uses=lambda params: (
                (Uses.SUMS if params["add"] else Uses(0))
                | (Uses.CLASSES if params["classes"] else Uses(0))
                | (Uses.INDICES if params["indices"] else Uses(0))
            ),
        ),
        Workload(
            name="attention",
            doc="attention in layer 0 of all-MiniLM-L6-v2 for a real text, or of random normal Q, K, V",
            params={
                "text": Param(type=str, default=None, doc="what is tokenised; not with those of random values"),
                "heads": size(None, "heads, of a text the first ones of the layer (at most 12); 1 if not given"),
                "seq": size(None, "tokens of random values; 128 if only others are given"),
                "head": size(None, "dimensions of a head of random values; 32 if only others are given"),
                "causal": Param(type=bool, default=None, doc="random values; a query sees the keys up to its own"),
                "queries": size(
                    None, "random values; the last queries of seq, 1 for a token that is decoded; seq if not given"
                ),
                "kv_heads": size(None, "random values; heads of keys and values, each shared by a group of heads"),
                "values": size(None, "random values; dimensions of a value, if not those of a query and a key"),
                "window": size(None, "random values; keys that a causal query sees, its own the last"),
                "sinks": Param(type=bool, default=None, doc="random values; a logit of each head beside its scores"),
                "seed": SEED,
            },
            settle=settle_attention,
            maker=make_attention,
        ),
        Workload(
            name="decode",
            doc="attention of one token over a cache of keys and values, as many of them as a number in HBM says",
            params={
                "heads": size(8, "heads"),
                "kv_heads": size(1, "heads of keys and values, each shared by a group of heads"),
                "head": size(32, "dimensions of a head"),
                "past": size(256, "tokens that the cache has room for"),
                "live": Param(
                    type=int, default=None, doc="tokens in it; all if not given", minimum=0, maximum=SIZE_MAX
                ),
                "block": size(None, "tokens of a turn, a power of two; four times the array's columns if not given"),
                "dynamic": Param(
                    type=bool, default=True, doc="the run reads how many tokens are live; else the kernel knows"
                ),
                "seed": SEED,
            },
            maker=make_decode,
        ),
        Workload(
            name="softmax",
            doc="softmax of rows of random normal values, rows on partitions",
            params={
                "rows": ROWS,
                "columns": size(512, "elements of a row"),
                "dtype": DTYPE,
                "online": Param(
                    type=int, default=0, doc="columns of a block, 0 for one pass", minimum=0, maximum=SIZE_MAX
                ),
                "seed": SEED,
            },
            maker=make_softmax,
        ),
        Workload(
            name="layernorm",
            doc="LayerNorm or RMSNorm of rows of random normal values, rows on partitions",
            params={
                "rows": ROWS,
                "columns": size(512, "elements of a row"),
                "dtype": DTYPE,
                "rms": Param(type=bool, default=False, doc="RMSNorm: no mean and no shift"),
                "seed": SEED,
            },
            maker=make_norm,
        ),
        Workload(
            name="ffn",
            doc="a feed-forward block of random weights: two linear layers with biases and a function between them",
            params={
                "tokens": size(128, "rows of x"),
                "width": size(128, "elements of a row"),
                "hidden": size(512, "elements between the layers"),
                "activation": Param(
                    type=str, default="gelu", doc="the function between the layers", choices=tuple(ACTIVATIONS)
                ),
                "seed": SEED,
            },
            maker=make_ffn,
        ),
        *LAYER_PARTS,
        Workload(
            name="moe",
            doc="a mixture of experts, a linear layer each, of random values; tokens go to their top-k experts",
            params={
                "experts": Param(type=int, default=4, doc="matrices W_e", minimum=1, maximum=EXPERTS_MAX),
                "tokens": size(128, "rows of x"),
                "d": size(128, "elements of a row"),
                "f": size(128, "elements of a row of the result"),
                "top_k": Param(type=int, default=2, doc="experts of a token", minimum=1, maximum=EXPERTS_MAX),
                "dtype": Param(type=str, default="bf16", doc="format of x and W", choices=MOE_FORMATS),
                "mode": Param(
                    type=str,
                    default=None,
                    doc="where experts are computed; tiles if not given, whole if dynamic",
                    choices=tuple(MODES),
                ),
                "route": Param(
                    type=str, default="scores", doc="who gets a token: by score, or in turn", choices=ROUTES
                ),
                "scored": Param(type=bool, default=True, doc="scores and top-k on the machine too"),
                "router": Param(
                    type=str, default="vector", doc="who chooses by scores: MAX8, or route", choices=ROUTERS
                ),
                "dynamic": Param(type=bool, default=False, doc="the run reads which tokens an expert gets"),
                "seed": SEED,
            },
            settle=settle_moe,
            maker=make_moe,
            uses=lambda params: (
                (Uses.CORES if params["router"] == "gpsimd" else Uses(0))
                | (Uses.INDICES if params["dynamic"] else Uses(0))
            ),
        ),
        Workload(
            name="gpsimd",
            doc="a program of yours on the GPSIMD cores, or an operator of their library on random values",
            params={
                "elf": Param(type=str, default=None, doc="the program, as plexus firmware build makes it"),
                "in": Param(
                    type=str, default=None, doc="an .npz file: arrays src0, src1, dst [partitions, columns], imm1, imm2"
                ),
                "out": Param(type=str, default=None, doc="an .npz file for dst and signature after the run"),
                "entry": Param(type=str, default=None, doc="name of an entry or a symbol; the ELF's own if not given"),
                "cores": Param(
                    type=int,
                    default=None,
                    doc="how many run it; all if not given, or one if it has tohost",
                    minimum=1,
                    maximum=CORES_MAX,
                ),
                "watchdog": Param(
                    type=int,
                    default=None,
                    doc="GPSIMD cycles that it may take; 2^22 if not given",
                    minimum=1,
                    maximum=(1 << 24) - 1,
                ),
                **OPERATOR_PARAMS,
            },
            settle=settle_gpsimd,
            maker=make_gpsimd,
            uses=lambda _: Uses.CORES,
        ),
        Workload(
            name="embedding",
            doc="rows of a table in pages, gathered by token numbers; where they lie the machine works out",
            params={
                "tokens": size(512, "tokens"),
                "vocabulary": size(4096, "rows of the table"),
                "width": size(256, "elements of a row, BF16"),
                "page": size(16, "rows of a page, a power of two"),
                "seed": SEED,
            },
            maker=make_embedding,
            uses=lambda _: Uses.INDICES,
        ),
        Workload(
            name="transpose",
            doc="y = x^T of random bits, by the array, by the vector engine, or of numbers by a product",
            params={
                "rows": size(128, "rows of x"),
                "columns": size(128, "columns of x"),
                "dtype": Param(type=str, default="bf16", doc="format of x", choices=TRANSPOSED_FORMATS),
                "engine": Param(type=str, default="tensor", doc="what transposes", choices=ENGINES),
                "seed": SEED,
            },
            maker=make_transpose,
        ),
        Workload(
            name="encoder-layer",
            doc="the whole of layer 0 of all-MiniLM-L6-v2 for a real text",
            params={"text": _TEXT},
            maker=make_layer,
        ),
        Workload(
            name="minilm",
            doc="all of all-MiniLM-L6-v2: a text in, its embedding out",
            params={"text": _TEXT},
            maker=make_model,
        ),
        Workload(
            name="minilm-projection",
            doc="query, key and value projections of layer 0 of all-MiniLM-L6-v2 for a real text",
            params={
                "text": _TEXT,
                "resident": _RESIDENT,
            },
            maker=make_projection,
        ),
    )
}


def find_workload(name: str) -> Workload:
    """A workload by name. KernelError lists them."""
    if name not in WORKLOADS:
        raise KernelError(f"there is no workload {name!r}; there are {', '.join(WORKLOADS)}")
    return WORKLOADS[name]
