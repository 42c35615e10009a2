"""Workload `moe`: y = sum over the top-k experts e of a token of gate_e(x) W_e^T x, a linear layer an expert.

The scores and the top-k of each token are computed on the machine: x Wg by the array, MAX8 and FIND_INDEX8 by the
vector engine, or the tokens of each expert by `route` on the GPSIMD cores. Which tokens an expert gets is decided by
the host, from the same rounded operands, before the program is built; the run then tells whether the machine's choice
was the same. The host gathers the columns of x for each expert, and adds up what the experts of a token give.

With `dynamic` the program has room for any routing, and does what lists and counts say that are its inputs, or what
`route` has found in the same run (moe_dynamic).
"""

from typing import Any

import numpy as np

from firmware.host_array import HostArray
from firmware.kernel import Kernel, KernelError
from firmware.kernels.expert_products import MODES, Expert, expert_products
from firmware.kernels.gemm import product_metrics, unrounded_metrics
from firmware.kernels.gemm_formats import GEMM_FORMATS, packed_operand
from firmware.kernels.moe_dynamic import block_of, computed_lists, given_lists, routed_experts
from firmware.kernels.moe_routes import (
    EXPERTS_MAX,
    Routes,
    agreement,
    machine_routes,
    routed,
    routed_tokens,
    top_scores,
)
from firmware.numbers import decode, encode
from firmware.packing import Packed
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["EXPERTS_MAX", "MOE_FORMATS", "MODES", "ROUTERS", "ROUTES", "moe"]

MOE_FORMATS = tuple(name for name, fmt in GEMM_FORMATS.items() if fmt.scales != "e4m3fn")
ROUTES = ("scores", "even")
ROUTERS = ("vector", "gpsimd")


def _dynamic(
    k: Kernel, x: np.ndarray, gate_bits: np.ndarray, weights: np.ndarray, routes: Routes, top_k: int, router: str
) -> None:
    """Output `y` [tokens, f]: all that the run's own lists and counts say, the sum over a token's experts too."""
    tokens = len(x)
    x_bits = np.ascontiguousarray(encode(x, "bf16"))
    if router == "gpsimd":
        block = block_of(k.cfg)
        found = machine_routes(k, np.ascontiguousarray(x_bits.T), gate_bits, top_k, -(-tokens // block) * block)
        lists = computed_lists(k, found)
    else:
        lists = given_lists(k, routes, top_k)
    table = k.hbm("x", x_bits.shape, "bf16", x_bits)
    source = k.hbm("w", weights.shape, "bf16", np.ascontiguousarray(encode(weights, "bf16")))
    routed_experts(k, lists, table, source, filled=router != "gpsimd")


def _refuse_dynamic(dtype: str, mode: str, route: str, router: str) -> None:
    """KernelError for what goes with places for known tokens only."""
    if mode != "whole":
        raise KernelError(f"dynamic=true computes one expert after another on the whole array: mode=whole, not {mode}")
    if dtype != "bf16":
        raise KernelError(f"dynamic=true turns gathered rows of x, which are bf16, not {dtype}")
    if router == "gpsimd" and route != "scores":
        raise KernelError(f"router=gpsimd with dynamic=true routes by scores, and route={route} is the host's choice")


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
    dynamic: bool = False,
) -> Program:
    """A program for float32 x [tokens, d], gate [d, experts], weights [experts, d, f].

    mode: tiles (an expert a row group, all at once), one (one after another, each on one row group), whole (one after
    another on the whole array). route: scores, or even (tokens in turn). scored: scores and top-k on the machine too;
    router: vector (MAX8 and FIND_INDEX8) or gpsimd (route). Outputs: `y{e}` [f, tokens of expert e], FP32, weighted;
    `top`, of gpsimd `lists` and `counts`. dynamic: the run decides who gets which tokens; instead of `y{e}` there is
    `y` [tokens, f]. Errors: KernelError.
    """
    tokens, experts = len(x), gate.shape[1]
    if not 1 <= experts <= EXPERTS_MAX:
        raise KernelError(f"moe has 1 to {EXPERTS_MAX} experts, not {experts}")
    if not 1 <= top_k <= experts:
        raise KernelError(f"top_k must be from 1 to experts ({experts}), not {top_k}")
    if router == "gpsimd" and not scored:
        raise KernelError("router=gpsimd routes by the scores of the machine, and scored=false leaves them out")
    if dynamic:
        _refuse_dynamic(dtype, mode, route, router)
    k = Kernel(cfg, "moe")
    x_bits, gate_bits = (np.ascontiguousarray(encode(a, "bf16")) for a in (x.T, gate))
    real_x, real_gate = (decode(bits, "bf16").astype(np.float64) for bits in (x_bits, gate_bits))
    routes = routed(real_x.T @ real_gate, top_k, route)
    moving: list[Packed] = []
    stationary: list[Packed] = []
    for e in range(experts):
        moving.append(packed_operand(cfg, dtype, "a", np.ascontiguousarray(x[routes.tokens[e]].T)))
        stationary.append(packed_operand(cfg, dtype, "b", weights[e]))
    if scored and router == "gpsimd" and not dynamic:
        routed_tokens(k, x_bits, gate_bits, top_k)
    elif scored and router == "vector":
        top_scores(k, x_bits, gate_bits)
    work = [Expert(e, stationary[e], moving[e], routes.gates[e]) for e in range(experts) if len(routes.tokens[e])]
    if dynamic:
        _dynamic(k, x, gate_bits, weights, routes, top_k, router)
    else:
        expert_products(k, work, mode)

    def summed(outputs: dict[str, np.ndarray]) -> np.ndarray:
        """y [tokens, f] in float64, what a token's experts give added up in order of their numbers."""
        if dynamic:
            return decode(outputs["y"], "fp32").astype(np.float64)
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
            found["routes_agree"] = agreement(routes.scores, top_k, outputs)
        return found

    macs = sum(len(at) for at in routes.tokens) * weights.shape[1] * weights.shape[2]
    scores = scored * tokens * gate.size
    # Experts take several numbers a row, scores always one.
    cycles = macs / GEMM_FORMATS[dtype].rate + scores
    host = "the host routes tokens by the same scores, "
    if dynamic and router == "gpsimd":
        host = "lists and counts of tokens are those of route in the same run"
    elif dynamic:
        host += "and gives lists and counts of them to the run: another run of the same program may have others"
    else:
        host += "gathers the columns of x for each expert and adds up the results of a token's experts"
    notes = [host, f"mode={mode}: {MODES[mode]}"]
    if dynamic:
        notes.append(f"blocks of {block_of(cfg)} tokens of an expert, as many as its count says")
    pe_macs = (macs + scores) / cycles
    return k.program(macs=macs + scores, pe_macs=pe_macs, notes=notes, metrics=metrics, results=results)
