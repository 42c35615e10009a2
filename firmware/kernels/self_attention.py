"""Multi-head attention with its projections: x^T comes as an operand, the context leaves head by head.

Q^T and K^T lie with features on partitions, so that their biases are columns, which the scalar engine adds as the sums
leave PSUM; V lies with tokens on partitions, and its bias is a row, which the vector engine adds.
"""

from collections.abc import Callable, Mapping

import numpy as np

from firmware.kernel import HbmView, Kernel, Tile, TileView
from firmware.kernels.attention_blocks import Sight
from firmware.kernels.attention_core import Attention, Head, Result
from firmware.kernels.identity import identity
from firmware.kernels.linear import Linear, Operand, psum_tiles
from firmware.kernels.spans import Span, spans
from firmware.numbers import encode

__all__ = ["COLUMN_BIASES", "SelfAttention", "weight_tensors"]

COLUMN_BIASES = ("query_bias", "key_bias", "up_bias")
"""Biases of what lies with features on partitions."""


def weight_tensors(k: Kernel, prefix: str, values: Mapping[str, np.ndarray]) -> dict[str, HbmView]:
    """Put float32 arrays into HBM. Matrices [out, in] become [in, out] in BF16, vectors stay FP32."""
    found: dict[str, HbmView] = {}
    for name, x in values.items():
        if x.ndim == 2:
            bits = np.ascontiguousarray(encode(x.T, "bf16"))
            found[name] = k.hbm(f"{prefix}{name}_t", bits.shape, "bf16", bits)
        else:
            shape = (x.size, 1) if name in COLUMN_BIASES else (x.size,)
            found[name] = k.hbm(f"{prefix}{name}", shape, "fp32", encode(x, "fp32").reshape(shape))
    return found


def load_column(k: Kernel, tile: Tile, source: HbmView, cuts: list[Span]) -> None:
    """A vector [features, 1] of HBM: column i of the tile holds its cut i."""
    for i, cut in enumerate(cuts):
        k.dma(tile[: cut.size, i : i + 1], source[cut.start : cut.stop, :])


class SelfAttention:
    """Memory of the projections and of attention over `heads` heads of `dims`."""

    def __init__(self, k: Kernel, tokens: int, dims: int, heads: int, *, slots: int = 4, tokens_max: int | None = None):
        """tokens_max: most tokens of x that are asked for at once; slots: chunks of weights in SBUF at a time."""
        cfg = k.cfg
        self.k = k
        self.dims, self.heads, self.tokens = dims, heads, tokens
        self.size = size = min(cfg.tensor.rows, cfg.tensor.cols)
        self.tiles = spans(tokens, size)
        self.features = spans(heads * dims, size)
        self.attention = Attention(k, dims, Sight(tokens, tokens), identity(k))
        self.attention.load_identity()
        # The projections grow where scores, transposes and outputs come later.
        core = self.attention
        width = core.turned[0].columns
        own = [
            tile[:, at : at + width]
            for tile in (*core.scores, *core.turned, *core.sums)
            for at in range(0, tile.columns - width + 1, width)
        ]
        sums = own + psum_tiles(k, width)
        self.linear = Linear(k, sums, slots, tokens_max=tokens_max)
        self.q_t = [k.sbuf(f"q_t{i}", partitions=size, columns=tokens, dtype="bf16") for i in range(len(self.features))]
        self.k_t = [k.sbuf(f"k_t{i}", partitions=size, columns=tokens, dtype="bf16") for i in range(len(self.features))]
        self.v = [
            k.sbuf(f"v{i}", partitions=t.size, columns=heads * dims, dtype="bf16") for i, t in enumerate(self.tiles)
        ]
        self.biases = {
            name: k.sbuf(f"{name}_column", partitions=size, columns=len(self.features), dtype="fp32")
            for name in ("query", "key")
        }

    def project(self, weights: Mapping[str, HbmView], x: Operand, value_bias: TileView) -> None:
        """Q^T, K^T and V. x: [K tile, tokens]; value_bias: a row on every partition."""
        k = self.k
        for name, tile in self.biases.items():
            load_column(k, tile, weights[f"{name}_bias"], self.features)
        for name, targets in (("query", self.q_t), ("key", self.k_t)):
            bias = self.biases[name]

            def turned(
                features: Span, part: Span, sums: TileView, targets: list[Tile] = targets, bias: Tile = bias
            ) -> None:
                number = features.start // self.size
                out = targets[number][: features.size, part.start : part.stop]
                column = bias[: features.size, number : number + 1]
                k.scalar.activation(out, sums, "copy", bias=column)

            self.linear.by_features(weights[name], x, self.tokens, turned)

        def straight(part: Span, columns: Span, sums: TileView) -> None:
            place = slice(columns.start, columns.stop)
            out = self.v[part.start // self.size][: part.size, place]
            k.vector.tensor_tensor(out, sums, "add", value_bias[: part.size, place])

        self.linear.by_tokens(weights["value"], x, self.tokens, straight)

    def run(self, store: Callable[[Result], None]) -> None:
        """Softmax and products of all heads."""
        self.attention.run(self.heads, self._head, store)

    def _head(self, number: int) -> Head:
        """Operands of a head: the parts of the tiles that hold its dimensions."""
        at, end = number * self.dims, (number + 1) * self.dims
        columns = slice(at, end)
        parts: list[tuple[int, int, int]] = []  # tile, from, to
        while at < end:
            tile, low = divmod(at, self.size)
            high = min(self.size, low + end - at)
            parts.append((tile, low, high))
            at += high - low
        return Head(
            [self.q_t[t][a:b, :] for t, a, b in parts],
            [self.k_t[t][a:b, :] for t, a, b in parts],
            [v[:, columns] for v in self.v],
        )
