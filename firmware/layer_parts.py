"""Workloads that are parts of a decoder layer: gated feed-forward, rotary positions, what stands between products."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from firmware.kernels.elementwise import ELEMENTWISE, elementwise
from firmware.kernels.gated_ffn import gated_ffn
from firmware.kernels.rope import WORK_FORMATS, rope
from firmware.makers import held
from firmware.params import ROWS, SEED, SIZE_MAX, size
from firmware.program import Program
from firmware.workload import Param, Workload
from rtl.contract.config import Config

__all__ = ["LAYER_PARTS"]


def _make_gated_ffn(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    tokens, width, hidden = params["tokens"], params["width"], params["hidden"]
    held("gated-ffn", tokens * width + 3 * width * hidden, tokens=tokens, width=width, hidden=hidden)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    x = rng.standard_normal((tokens, width), np.float32)
    gate, up = (rng.standard_normal((hidden, width), np.float32) / np.float32(math.sqrt(width)) for _ in range(2))
    down = rng.standard_normal((width, hidden), np.float32) / np.float32(math.sqrt(hidden))
    return gated_ffn(cfg, x, gate, up, down)


def _make_elementwise(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    rows, columns = params["rows"] or cfg.partitions, params["columns"]
    held("elementwise", 3 * rows * columns, rows=rows, columns=columns)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    a, b = (rng.standard_normal((rows, columns), np.float32) for _ in range(2))
    return elementwise(cfg, a, b, op=params["op"])


def _make_rope(cfg: Config, params: Mapping[str, Any], seed: int) -> Program:
    tokens, heads, head = params["tokens"], params["heads"], params["head"]
    held("rope", 2 * tokens * heads * head, tokens=tokens, heads=heads, head=head)
    rng = np.random.default_rng(seed if params["seed"] is None else params["seed"])
    x = rng.standard_normal((tokens, heads, head), np.float32)
    return rope(cfg, x, first=params["first"], theta=params["theta"], work=params["work"])


LAYER_PARTS = (
    Workload(
        name="gated-ffn",
        doc="a gated feed-forward block of random weights, (silu(x Wg) * (x Wu)) Wd, without biases",
        params={
            "tokens": size(128, "rows of x"),
            "width": size(128, "elements of a row"),
            "hidden": size(512, "elements between the layers"),
            "seed": SEED,
        },
        maker=_make_gated_ffn,
    ),
    Workload(
        name="rope",
        doc="rotary positions of random heads: halves turned by an angle of token and pair",
        params={
            "tokens": size(128, "rows of x"),
            "heads": size(4, "heads of a row"),
            "head": size(32, "dimensions of a head, an even number"),
            "first": Param(type=int, default=0, doc="position of the first token", minimum=0, maximum=SIZE_MAX),
            "theta": Param(type=float, default=10000.0, doc="base of the angles", minimum=2),
            "work": Param(type=str, default="bf16", doc="format of tables and products", choices=WORK_FORMATS),
            "seed": SEED,
        },
        maker=_make_rope,
    ),
    Workload(
        name="elementwise",
        doc="what stands between products, number by number in BF16: a + b, silu(a) b, a function of a",
        params={
            "op": Param(type=str, default="add", doc="what is computed", choices=tuple(ELEMENTWISE)),
            "rows": ROWS,
            "columns": size(512, "numbers of a row"),
            "seed": SEED,
        },
        maker=_make_elementwise,
    ),
)
