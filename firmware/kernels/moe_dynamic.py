"""A mixture of experts whose tokens a run counts: blocks of each expert's tokens, as many as its register says.

The rows of a block are gathered by a list of token numbers, turned by the array, multiplied with the weights of the
expert, weighted on the way out of PSUM and scattered to the places of these tokens. Behind the experts the places of a
token are added up. A list ends with -1, whose rows are left out on both ways, so a last block computes rows of tokens
that were there before, and nobody sees them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firmware.decisions.numbers import Number
from firmware.kernel import HbmView, Kernel, Tile
from firmware.kernels.moe_routes import Machine, Routes
from firmware.kernels.spans import Span, spans
from firmware.numbers import encode
from rtl.contract.config import Config
from rtl.contract.isa import Queue

__all__ = ["Lists", "block_of", "computed_lists", "given_lists", "list_arrays", "routed_experts"]

_SLOTS = 4  # blocks under way
_LOADED = 2  # experts whose weights are in SBUF
_ADDED = 3  # blocks of tokens whose results are added up
_BANKS = 2  # of sums
_PIECES = 4  # turned parts of rows on their way out of PSUM


def block_of(cfg: Config) -> int:
    """Tokens of a block: as many as the array turns at once, each on a partition."""
    return min(cfg.partitions, cfg.tensor.rows, cfg.tensor.cols)


@dataclass(frozen=True, slots=True)
class Lists:
    """What a run knows of its routing. `counts`: tokens of each expert. `tokens` and `places`: int32 [experts, whole
    blocks] in SBUF, the tokens of each expert and the rows of the results that are theirs, then less than 0. `shares`:
    FP32 [tokens, experts] in HBM, what an expert counts. `width`: places of a token."""

    counts: Sequence[Number]
    tokens: Tile
    places: Tile
    shares: HbmView
    width: int


def _room(tokens: int, block: int) -> int:
    return -(-tokens // block) * block


def list_arrays(routes: Routes, top_k: int, block: int) -> dict[str, np.ndarray]:
    """Inputs `counts` [experts], `tokens` and `places` [experts, whole blocks], int32, and `shares` [tokens, experts],
    FP32, as bits, of a routing in which each token has `top_k` experts."""
    tokens, experts = routes.scores.shape
    lists = np.full((2, experts, _room(tokens, block)), -1, np.int32)
    shares = np.zeros((tokens, experts), np.float32)
    used = np.zeros(tokens, np.int32)
    for e, (at, gates) in enumerate(zip(routes.tokens, routes.gates, strict=True)):
        lists[0, e, : len(at)], lists[1, e, : len(at)] = at, at * top_k + used[at]
        used[at] += 1
        shares[at, e] = gates
    counts = np.array([len(at) for at in routes.tokens], np.uint32)
    found, places = lists.view(np.uint32)
    return {"counts": counts, "tokens": found, "places": places, "shares": encode(shares, "fp32")}


def given_lists(k: Kernel, routes: Routes, top_k: int) -> Lists:
    """The host's routing, as inputs: another run of the program may have another one."""
    arrays = list_arrays(routes, top_k, block_of(k.cfg))
    tokens, experts = routes.scores.shape
    counts = k.hbm("counts", (experts,), "int32", arrays["counts"])
    found, places = (
        k.sbuf(f"{name} of experts", partitions=experts, columns=arrays[name].shape[1], dtype="int32")
        for name in ("tokens", "places")
    )
    for name, tile in (("tokens", found), ("places", places)):
        k.dma(tile[:, :], k.hbm(name, arrays[name].shape, "int32", arrays[name])[:, :])
    shares = k.hbm("shares", (tokens, experts), "fp32", arrays["shares"])
    return Lists(_registers(k, counts, tokens), found, places, shares, top_k)


def computed_lists(k: Kernel, found: Machine) -> Lists:
    """What the machine has found: a token has a place for each expert, number token x experts + expert."""
    tokens, experts = found.shares.shape
    places = k.sbuf("places of experts", partitions=experts, columns=found.lists.columns, dtype="int32")
    own = k.sbuf("numbers of experts", partitions=experts, columns=1, dtype="fp32")
    numbers = encode(np.arange(experts, dtype=np.float32).reshape(-1, 1), "fp32")
    k.dma(own[:, :], k.hbm("numbers", (experts, 1), "fp32", numbers)[:, :])
    k.vector.tensor_scalar(places[:, :], found.lists[:, :], "multiply", float(experts), "add", own[:, :])
    return Lists(_registers(k, found.counts, tokens), found.lists, places, found.shares, experts)


def _registers(k: Kernel, counts: HbmView, most: int) -> list[Number]:
    flat = counts if len(counts.shape) == 1 else counts[:, 0]
    return [k.register(flat[e : e + 1], most) for e in range(flat.shape[0])]


class _Experts:
    """Tiles, two of each, and what is said for an expert and a block of its tokens."""

    def __init__(self, k: Kernel, lists: Lists, x: HbmView, weights: HbmView, parts: HbmView):
        self.k, self.lists, self.x, self.source, self.parts = k, lists, x, weights, parts
        self.block = b = block_of(k.cfg)
        _, d, f = weights.shape
        bank = k.cfg.psum.bank_bytes
        self.depth = spans(d, b)
        self.features = spans(f, min(bank // 4, k.cfg.tensor.moving_max))
        self.rows = self._tiles("rows", b, d, "bf16")
        self.shares = self._tiles("shares of rows", b, 1, "fp32")
        self.stages = self._tiles("results", b, f, "fp32")
        self.turned = [self._tiles(f"turned {n}", cut.size, b, "bf16") for n, cut in enumerate(self.depth)]
        self.weights = [self._tiles(f"weights {n}", cut.size, f, "bf16", _LOADED) for n, cut in enumerate(self.depth)]
        width = self.features[0].size
        self.sums = [k.psum(f"sums {n}", partitions=b, columns=width, align=bank) for n in range(_BANKS)]
        # Transposes have a bank of their own, or they would wait for the matmuls that write it.
        self.pieces = [
            k.psum(f"pieces {n}", partitions=b, columns=b, align=4 if n else bank) for n in range(_PIECES)
        ]  # fmt: skip
        for tile in (*self.rows, *self.shares):
            k.vector.memset(tile[:, :], 0.0)  # rows that no token has filled are computed as well

    def _tiles(self, name: str, partitions: int, columns: int, dtype: str, count: int = _SLOTS) -> list[Tile]:
        k = self.k
        return [k.sbuf(f"{name} {n}", partitions=partitions, columns=columns, dtype=dtype) for n in range(count)]

    def expert(self, e: int) -> None:
        """All its tokens; an expert without any is not even loaded."""
        k, count = self.k, self.lists.counts[e]
        with k.if_(count > 0):
            for cut, tiles in zip(self.depth, self.weights, strict=True):
                k.dma(tiles[e % _LOADED][:, :], self.source[e, cut.start : cut.stop, :])
        with k.loop(-(-count // self.block)) as i:
            self._block(e, i)

    def _block(self, e: int, i: int) -> None:
        k, lists, here = self.k, self.lists, slice(i * self.block, (i + 1) * self.block)
        turn = (i + e) % _SLOTS  # so that the next expert's first block finds the other tiles
        rows, share, stage = (k.pick(tiles, turn) for tiles in (self.rows, self.shares, self.stages))
        tokens = lists.tokens[e : e + 1, here]
        k.gather(rows[:, :], self.x, tokens, skip=True)
        k.gather(share[:, :], lists.shares[:, e : e + 1], tokens, skip=True)
        turned = [k.pick(tiles, turn) for tiles in self.turned]
        for n, cut in enumerate(self.depth):
            piece = self.pieces[n % _PIECES][: cut.size, :]
            k.tensor.transpose(rows[:, cut.start : cut.stop], piece)
            k.vector.copy(turned[n][:, :], piece)
        for n, cut in enumerate(self.features):
            self._product(e, turned, cut, k.pick(self.sums, (i + e + n) % _BANKS), stage, share)
        # Over the queue of who has made the results: the next gathers do not wait behind it.
        places = lists.places[e : e + 1, here]
        k.scatter(self.parts, stage[:, :], places, skip=True, queue=Queue.SCALAR)

    def _product(self, e: int, turned: list[Tile], cut: Span, sums: Tile, stage: Tile, share: Tile) -> None:
        """The scalar engine weights: the vector engine is with rows of the next block by then."""
        k, features = self.k, slice(cut.start, cut.stop)
        for n, tiles in enumerate(self.weights):
            k.tensor.load(turned[n][:, :])
            k.tensor.matmul(tiles[e % _LOADED][:, features], sums[:, : cut.size], accumulate=n > 0)
        k.scalar.tensor_scalar(stage[:, features], sums[:, : cut.size], "multiply", share[:, :])


def routed_experts(k: Kernel, lists: Lists, x: HbmView, weights: HbmView, *, filled: bool) -> None:
    """Output `y` [tokens, f] FP32 of x [tokens, d] and weights [experts, d, f] in HBM, BF16. `filled`: each place of a
    token gets a result; else zeros are there first."""
    tokens, (experts, _, f) = x.shape[0], weights.shape
    width, block = lists.width, block_of(k.cfg)
    y = k.hbm("y", (tokens, f), "fp32")
    parts = y if width == 1 else k.hbm("results of experts", (tokens * width, f), "fp32", inner=True)
    cuts = spans(tokens, block)
    if not filled:
        zeros = k.sbuf("zeros", partitions=block, columns=width * f, dtype="fp32")
        k.vector.memset(zeros[:, :], 0.0)
        for cut in cuts:
            rows = parts[cut.start * width : cut.stop * width, :]
            k.dma(rows.split(0, width), zeros[: cut.size, :].split(0, f))
    work = _Experts(k, lists, x, weights, parts)
    for e in range(experts):
        work.expert(e)
    if width == 1:
        return
    tiles = [k.sbuf(f"places {n}", partitions=block, columns=width * f, dtype="fp32") for n in range(_ADDED)]
    for n, cut in enumerate(cuts):
        tile = tiles[n % _ADDED][: cut.size, :]
        k.dma(tile.split(0, f), parts[cut.start * width : cut.stop * width, :].split(0, width))
        for place in range(1, width):
            k.vector.tensor_tensor(tile[:, :f], tile[:, :f], "add", tile[:, place * f : (place + 1) * f])
        k.dma(y[cut.start : cut.stop, :], tile[:, :f])
