"""Workload `moe`: y = sum over the top-k experts e of a token of gate_e(x) W_e^T x, a linear layer an expert.

The scores and the top-k of each token are computed on the machine: x Wg by the array, MAX8 and FIND_INDEX8 by the
vector engine, or the tokens of each expert by `route` on the GPSIMD cores. No instruction and no descriptor takes an
address from data, so which tokens an expert gets is decided by the host, from the same rounded operands, before the
program is built; the run then tells whether the machine's choice was the same. The host gathers the columns of x for
each expert, and adds up what the experts of a token give.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from firmware.host_array import HostArray
from firmware.kernel import Kernel, KernelError, Tile
from firmware.kernels.expert_products import MODES, Expert, expert_products
from firmware.kernels.gemm import product_metrics, unrounded_metrics
from firmware.kernels.gemm_formats import GEMM_FORMATS, packed_operand
from firmware.kernels.spans import Span, spans
from firmware.numbers import decode, encode
from firmware.packing import Packed
from firmware.program import Program
from firmware.views import HbmView, TileView
from rtl.contract.config import Config

__all__ = ["EXPERTS_MAX", "MOE_FORMATS", "MODES", "ROUTERS", "ROUTES", "moe"]

EXPERTS_MAX = 8  # MAX8 and FIND_INDEX8 look at so many scores at once
MOE_FORMATS = tuple(name for name, fmt in GEMM_FORMATS.items() if fmt.scales != "e4m3fn")
ROUTES = ("scores", "even")
ROUTERS = ("vector", "gpsimd")
_LEAST = float("-inf")


@dataclass(frozen=True)
class _Routes:
    """Scores in float64 [tokens, experts]; tokens of each expert, and what each counts there."""

    scores: np.ndarray
    tokens: list[np.ndarray]
    gates: list[np.ndarray]


def _routed(scores: np.ndarray, top_k: int, route: str) -> _Routes:
    """Top-k of each token, ties to the lower expert, softmax of the chosen scores; or tokens in turn."""
    tokens, experts = scores.shape
    if route == "even":
        chosen = (np.arange(tokens)[:, None] * top_k + np.arange(top_k)) % experts
    else:
        chosen = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    best = np.take_along_axis(scores, chosen, axis=1)
    weights = np.exp(best - best.max(axis=1, keepdims=True))
    weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    places = [np.nonzero(chosen == e) for e in range(experts)]
    return _Routes(scores, [rows for rows, _ in places], [weights[at] for at in places])


@dataclass(frozen=True)
class _Scores:
    """x Wg by the array: `blocks` of tokens, a row of `sums` a token. Made in the order of its fields."""

    k: Kernel
    x: HbmView
    cuts: list[Span]
    gate: list[Tile]
    tokens: list[Tile]
    sums: Tile

    @classmethod
    def of(cls, k: Kernel, x_bits: np.ndarray, gate_bits: np.ndarray) -> "_Scores":
        """Tensors and tiles, and the gate on its way."""
        size, experts = min(k.cfg.tensor.rows, k.cfg.tensor.cols), gate_bits.shape[1]
        x, gate = k.hbm("x_t", x_bits.shape, "bf16", x_bits), k.hbm("gate", gate_bits.shape, "bf16", gate_bits)
        cuts = spans(len(x_bits), size)
        moving = [k.sbuf(f"gate{i}", partitions=c.size, columns=experts, dtype="bf16") for i, c in enumerate(cuts)]
        stationary = [k.sbuf(f"tokens{i}", partitions=size, columns=size, dtype="bf16") for i in range(2)]
        sums = k.psum("scores", partitions=size, columns=experts)
        for tile, cut in zip(moving, cuts, strict=True):
            k.dma(tile[:, :], gate[cut.start : cut.stop, :])
        return cls(k, x, cuts, moving, stationary, sums)

    @property
    def blocks(self) -> list[Span]:
        return spans(self.x.shape[1], self.sums.partitions)

    def block(self, tokens: Span) -> TileView:
        """Their scores, while no other block is asked for."""
        sums = self.sums[: tokens.size, :]
        for i, cut in enumerate(self.cuts):
            tile = self.tokens[i % 2][: cut.size, : tokens.size]
            self.k.dma(tile, self.x[cut.start : cut.stop, tokens.start : tokens.stop])
            self.k.tensor.load(tile)
            self.k.tensor.matmul(self.gate[i][:, :], sums, accumulate=i > 0)
        return sums


def _top_scores(k: Kernel, x_bits: np.ndarray, gate_bits: np.ndarray) -> None:
    """Output `top` [tokens, 8]: experts of each token by score, on the machine."""
    of = _Scores.of(k, x_bits, gate_bits)
    size, experts = of.sums.partitions, of.sums.columns
    top = k.hbm("top", (x_bits.shape[1], EXPERTS_MAX), "uint32")
    scores = k.sbuf("all_scores", partitions=size, columns=EXPERTS_MAX, dtype="fp32")
    values = k.sbuf("top_values", partitions=size, columns=EXPERTS_MAX, dtype="fp32")
    found = k.sbuf("top_experts", partitions=size, columns=EXPERTS_MAX, dtype="uint32")
    k.vector.memset(scores[:, :], _LEAST)
    for block in of.blocks:
        k.vector.copy(scores[: block.size, :experts], of.block(block))
        k.vector.max8(values[: block.size, :], scores[: block.size, :])
        k.vector.find_index8(found[: block.size, :], scores[: block.size, :], values[: block.size, :])
        k.dma(top[block.start : block.stop, :], found[: block.size, :])


def _routed_tokens(k: Kernel, x_bits: np.ndarray, gate_bits: np.ndarray, top_k: int) -> None:
    """Outputs `lists` [experts, tokens], tokens of each expert and then -1, and `counts`, on the machine."""
    of = _Scores.of(k, x_bits, gate_bits)
    size, experts, tokens = of.sums.partitions, of.sums.columns, x_bits.shape[1]
    logits = k.sbuf("logits", partitions=size, columns=len(of.blocks) * experts, dtype="fp32")
    lists = k.sbuf("token_lists", partitions=experts, columns=tokens, dtype="int32")
    counts = k.sbuf("token_counts", partitions=experts, columns=1, dtype="int32")
    for number, block in enumerate(of.blocks):
        at = slice(number * experts, (number + 1) * experts)
        k.vector.copy(logits[: block.size, at], of.block(block))
    k.gpsimd.route(lists[:, :], counts[:, :], logits[:, :], tokens=tokens, k=top_k)
    k.dma(k.hbm("lists", (experts, tokens), "int32")[:, :], lists[:, :])
    k.dma(k.hbm("counts", (experts, 1), "int32")[:, :], counts[:, :])


def _agreement(scores: np.ndarray, top_k: int, outputs: dict[str, np.ndarray]) -> float:
    """Share of tokens for which the machine has chosen the host's experts."""
    wanted = np.zeros(scores.shape, bool)
    np.put_along_axis(wanted, np.argsort(-scores, axis=1, kind="stable")[:, :top_k], True, axis=1)
    found = np.zeros(scores.shape, bool)
    if "lists" in outputs:
        experts, places = np.nonzero(outputs["lists"].view(np.int32) >= 0)
        found[outputs["lists"][experts, places], experts] = True
    else:
        chosen = outputs["top"][:, :top_k].astype(np.int64)
        rows, places = np.nonzero(chosen < scores.shape[1])  # a NaN is found nowhere, and has a number that is none
        found[rows, chosen[rows, places]] = True
    return float((found == wanted).all(axis=1).mean())


def moe(
    cfg: Config,
    x: np.ndarray,
    gate: np.ndarray,
    weights: np.ndarray,
    *,
    top_k: int = 2,
    dtype: str = "bf16",
    mode: str = "tiles",
    route: str = "scores",
    scored: bool = True,
    router: str = "vector",
) -> Program:
    """A program for float32 x [tokens, d], gate [d, experts], weights [experts, d, f].

    mode: tiles (an expert a row group, all at once), one (one after another, each on one row group), whole (one after
    another on the whole array). route: scores, or even (tokens in turn). scored: scores and top-k on the machine too;
    router: vector (MAX8 and FIND_INDEX8) or gpsimd (route). Outputs: `y{e}` [f, tokens of expert e], FP32, weighted;
    `top`, of gpsimd `lists` and `counts`. Errors: KernelError.
    """
    tokens, experts = len(x), gate.shape[1]
    if not 1 <= experts <= EXPERTS_MAX:
        raise KernelError(f"moe has 1 to {EXPERTS_MAX} experts, not {experts}")
    if not 1 <= top_k <= experts:
        raise KernelError(f"top_k must be from 1 to experts ({experts}), not {top_k}")
    if router == "gpsimd" and not scored:
        raise KernelError("router=gpsimd routes by the scores of the machine, and scored=false leaves them out")
    k = Kernel(cfg, "moe")
    x_bits, gate_bits = (np.ascontiguousarray(encode(a, "bf16")) for a in (x.T, gate))
    real_x, real_gate = (decode(bits, "bf16").astype(np.float64) for bits in (x_bits, gate_bits))
    routes = _routed(real_x.T @ real_gate, top_k, route)
    moving: list[Packed] = []
    stationary: list[Packed] = []
    for e in range(experts):
        moving.append(packed_operand(cfg, dtype, "a", np.ascontiguousarray(x[routes.tokens[e]].T)))
        stationary.append(packed_operand(cfg, dtype, "b", weights[e]))
    if scored and router == "gpsimd":
        _routed_tokens(k, x_bits, gate_bits, top_k)
    elif scored:
        _top_scores(k, x_bits, gate_bits)
    work = [Expert(e, stationary[e], moving[e], routes.gates[e]) for e in range(experts) if len(routes.tokens[e])]
    expert_products(k, work, mode)

    def summed(outputs: dict[str, np.ndarray]) -> np.ndarray:
        """y [tokens, f] in float64, what a token's experts give added up in order of their numbers."""
        y = np.zeros((tokens, weights.shape[2]))
        for one in work:
            y[routes.tokens[one.number]] += decode(outputs[f"y{one.number}"], "fp32").T
        return y

    def results(outputs: dict[str, np.ndarray]) -> dict[str, HostArray]:
        return {"y": HostArray(encode(summed(outputs), "fp32"), "fp32")}

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Against float64 of the rounded operands and of those that came, experts and their shares the same; whether
        the machine chose the same experts."""
        y, exact, given = summed(outputs), *(np.zeros((tokens, weights.shape[2])) for _ in range(2))
        for one in work:
            at, share = routes.tokens[one.number], one.gates[:, None]
            exact[at] += share * (one.moving.values().T @ one.stationary.values())
            given[at] += share * (x[at].astype(np.float64) @ weights[one.number].astype(np.float64))
        found: dict[str, Any] = product_metrics(y, exact) | unrounded_metrics(y, given)
        found["tokens_by_expert"] = [len(at) for at in routes.tokens]
        if scored:
            found["routes_agree"] = _agreement(routes.scores, top_k, outputs)
        return found

    macs = sum(len(at) for at in routes.tokens) * weights.shape[1] * weights.shape[2]
    scores = scored * tokens * gate.size
    # Experts take several numbers a row, scores always one.
    cycles = macs / GEMM_FORMATS[dtype].rate + scores
    host = "no address comes from data on this machine: the host routes tokens by the same scores, gathers the columns "
    host += "of x for each expert and adds up the results of a token's experts"
    notes = [host, f"mode={mode}: {MODES[mode]}"]
    pe_macs = (macs + scores) / cycles
    return k.program(macs=macs + scores, pe_macs=pe_macs, notes=notes, metrics=metrics, results=results)
