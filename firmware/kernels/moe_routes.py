"""Which tokens an expert gets: as the host routes them, and scores, top-k and lists of tokens on the machine."""

from dataclasses import dataclass

import numpy as np

from firmware.kernel import Kernel, Tile
from firmware.kernels.spans import Span, spans
from firmware.views import HbmView, TileView

__all__ = ["EXPERTS_MAX", "Machine", "Routes", "agreement", "machine_routes", "routed", "routed_tokens", "top_scores"]

EXPERTS_MAX = 8  # MAX8 and FIND_INDEX8 look at so many scores at once
_LEAST = float("-inf")


@dataclass(frozen=True)
class Routes:
    """Scores in float64 [tokens, experts]; tokens of each expert, and what each counts there."""

    scores: np.ndarray
    tokens: list[np.ndarray]
    gates: list[np.ndarray]


def routed(scores: np.ndarray, top_k: int, route: str) -> Routes:
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
    return Routes(scores, [rows for rows, _ in places], [weights[at] for at in places])


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


def top_scores(k: Kernel, x_bits: np.ndarray, gate_bits: np.ndarray) -> None:
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


def _listed(
    k: Kernel, x_bits: np.ndarray, gate_bits: np.ndarray, top_k: int, room: int
) -> tuple[Tile, Tile, HbmView, list[Span]]:
    """Outputs `lists` [experts, tokens], tokens of each expert and then -1, and `counts` [experts, 1], on the machine.

    The tile of the lists, with `room` columns; that of the scores, [tokens of a block, experts of each block]; the
    counts; the blocks."""
    of = _Scores.of(k, x_bits, gate_bits)
    size, experts, tokens = of.sums.partitions, of.sums.columns, x_bits.shape[1]
    logits = k.sbuf("logits", partitions=size, columns=len(of.blocks) * experts, dtype="fp32")
    lists = k.sbuf("token_lists", partitions=experts, columns=room, dtype="int32")
    counts = k.sbuf("token_counts", partitions=experts, columns=1, dtype="int32")
    for number, block in enumerate(of.blocks):
        at = slice(number * experts, (number + 1) * experts)
        k.vector.copy(logits[: block.size, at], of.block(block))
    k.gpsimd.route(lists[:, :tokens], counts[:, :], logits[:, :], tokens=tokens, k=top_k)
    k.dma(k.hbm("lists", (experts, tokens), "int32")[:, :], lists[:, :tokens])
    stored = k.hbm("counts", (experts, 1), "int32")
    k.dma(stored[:, :], counts[:, :])
    return lists, logits, stored, of.blocks


def routed_tokens(k: Kernel, x_bits: np.ndarray, gate_bits: np.ndarray, top_k: int) -> None:
    """Outputs `lists` [experts, tokens], tokens of each expert and then -1, and `counts`, on the machine."""
    _listed(k, x_bits, gate_bits, top_k, x_bits.shape[1])


@dataclass(frozen=True, slots=True)
class Machine:
    """A routing that the machine has worked out: `lists` int32 [experts, at least tokens] in SBUF, tokens of each and
    then -1; in HBM `counts` [experts, 1] and `shares` FP32 [tokens, experts], right for the experts of a token."""

    lists: Tile
    counts: HbmView
    shares: HbmView


def machine_routes(k: Kernel, x_bits: np.ndarray, gate_bits: np.ndarray, top_k: int, room: int) -> Machine:
    """Lists with `room` columns, counts, and the softmax of the scores of a token's `top_k` experts, on the machine."""
    tokens, experts = x_bits.shape[1], gate_bits.shape[1]
    lists, logits, counts, blocks = _listed(k, x_bits, gate_bits, top_k, room)
    if room > tokens:
        k.vector.memset(lists[:, tokens:], -1)
    shares = k.hbm("shares", (tokens, experts), "fp32", inner=True)
    size = logits.partitions
    scores, best = (k.sbuf(n, partitions=size, columns=EXPERTS_MAX, dtype="fp32") for n in ("all_scores", "best"))
    total = k.sbuf("total", partitions=size, columns=1, dtype="fp32")
    k.vector.memset(scores[:, :], _LEAST)
    for number, block in enumerate(blocks):
        here, top = scores[: block.size, :experts], best[: block.size, :]
        sums = total[: block.size, :]
        k.vector.copy(here, logits[: block.size, number * experts : (number + 1) * experts])
        k.vector.max8(top, scores[: block.size, :])
        peak = best[: block.size, 0:1]
        # All experts' exponentials, those of a token's own added up: what the others would have is not asked for.
        k.vector.exp(here, here, peak)
        k.vector.exp(best[: block.size, :top_k], best[: block.size, :top_k], peak, reduce="reset_reduce", store=sums)
        k.vector.reciprocal(sums, sums)
        k.vector.tensor_scalar(here, here, "multiply", sums)
        k.dma(shares[block.start : block.stop, :], here)
    return Machine(lists, counts, shares)


def agreement(scores: np.ndarray, top_k: int, outputs: dict[str, np.ndarray]) -> float:
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
