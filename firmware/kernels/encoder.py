"""A transformer encoder layer as BERT has it: attention, output projection, norm, feed-forward block, norm.

Tokens lie on partitions in FP32 (what is added and normalised) and, transposed and in BF16, along the free axis (what
the array multiplies); the identity on the array transposes. Queries, keys and the inner values of the feed-forward
block share memory, so the block runs in as many parts as that takes. One set of memory serves all layers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firmware.kernel import HbmView, Kernel, KernelError, Tile, TileView
from firmware.kernels.attention_core import Result
from firmware.kernels.linear import Operand
from firmware.kernels.normalise import NormScratch, layer_norm
from firmware.kernels.self_attention import SelfAttention, load_column
from firmware.kernels.spans import Span, spans

__all__ = ["Encoder", "Shape"]

ROWS = 4  # vectors of a layer that are in SBUF at a time, on every partition
RESERVE = 128  # bytes of a partition that the inner values leave

Weights = Mapping[str, HbmView]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model: tokens, width, heads (which divide the width), hidden width, epsilon of the norms."""

    tokens: int
    width: int
    heads: int
    hidden: int
    epsilon: float


class Encoder:
    """Memory of one layer. x lies in `x`, a tile of SBUF for each tile of tokens; `layer` replaces it."""

    def __init__(self, k: Kernel, shape: Shape):
        if shape.width % shape.heads:
            raise KernelError(f"the width must be a multiple of the heads ({shape.heads}), not {shape.width}")
        self.k = k
        self.shape = shape
        k.scalar.load_table(["gelu", "rsqrt"])
        self.attention = SelfAttention(k, shape.tokens, shape.width // shape.heads, shape.heads)
        self.linear, self.size, self.tiles = self.attention.linear, self.attention.size, self.attention.tiles
        self.wide, self.deep = self.attention.features, spans(shape.hidden, self.size)
        self.tall = min(self.size, shape.tokens)

        def rows(name: str, dtype: str, count: int) -> list[Tile]:
            return [k.sbuf(f"{name}{i}", partitions=self.tall, columns=shape.width, dtype=dtype) for i in range(count)]

        def transposed(name: str, count: int) -> list[Tile]:
            return [
                k.sbuf(f"{name}{i}", partitions=self.size, columns=shape.tokens, dtype="bf16") for i in range(count)
            ]

        self.x = rows("x_tile", "fp32", len(self.tiles))
        self.cast = rows("cast", "bf16", 2)
        self.context = rows("head_context", "bf16", len(self.tiles))
        self.vectors = rows("vector", "fp32", ROWS)
        self.norms = [NormScratch(k, f"norm{i}", self.tall, shape.width) for i in range(2)]
        self.up_bias = k.sbuf("up_column", partitions=self.size, columns=len(self.deep), dtype="fp32")
        self.x_t = transposed("x_t", len(self.wide))
        shared = [*self.attention.q_t, *self.attention.k_t]
        row_bytes = -(-shape.tokens * 2 // 16) * 16
        more = max(0, min(len(self.deep) - len(shared), (k.sbuf_free() - RESERVE) // row_bytes))
        self.inner = shared + transposed("inner", more)
        self._fetched = 0
        self._casts = 0

    def row(self, source: HbmView) -> TileView:
        """A vector of the model's width, on its way to every partition; valid until ROWS more have come."""
        tile = self.vectors[self._fetched % ROWS]
        self._fetched += 1
        self.k.dma(tile[:, :], source.repeat(self.tall))
        return tile[:, :]

    def layer(self, weights: Weights) -> None:
        """x = layer(x), all tokens."""
        k, linear = self.k, self.linear
        self.attend(weights)
        for tile, context in zip(self.tiles, self.context, strict=True):
            self._transpose(context[: tile.size, :], tile)
        self._add(weights["output_bias"])
        linear.by_tokens(weights["output"], self._operand(self.x_t), self.shape.tokens, self._accumulate)
        self.norm(weights["gain1"], weights["shift1"])
        self._to_array()
        load_column(k, self.up_bias, weights["up_bias"], self.deep)
        self._add(weights["down_bias"])
        for part in spans(self.shape.hidden, len(self.inner) * self.size):
            first = part.start // self.size

            def gelu(features: Span, tokens: Span, sums: TileView, first: int = first) -> None:
                number = features.start // self.size
                out = self.inner[number][: features.size, tokens.start : tokens.stop]
                bias = self.up_bias[: features.size, first + number : first + number + 1]
                k.scalar.activation(out, sums, "gelu", bias=bias)

            up, down = weights["up"][:, part.start : part.stop], weights["down"][part.start : part.stop, :]
            linear.by_features(up, self._operand(self.x_t), self.shape.tokens, gelu)
            linear.by_tokens(down, self._operand(self.inner), self.shape.tokens, self._accumulate)
        self.norm(weights["gain2"], weights["shift2"])

    def attend(self, weights: Weights) -> None:
        """context = attention of x, all heads side by side, without the output projection."""
        dims = self.attention.dims
        self._to_array()
        self.attention.project(weights, self._operand(self.x_t), self.row(weights["value_bias"]))

        def store(result: Result) -> None:
            columns = slice(result.head * dims, (result.head + 1) * dims)
            target = self.context[result.queries.start // self.size][: result.queries.size, columns]
            self.attention.attention.divide(target, result)

        self.attention.run(store)

    def norm(self, gain: HbmView, shift: HbmView) -> None:
        """x = LayerNorm of x."""
        gains, shifts = self.row(gain), self.row(shift)
        for i, (tile, x) in enumerate(zip(self.tiles, self.x, strict=True)):
            rows = slice(0, tile.size)
            scratch = self.norms[i % len(self.norms)]
            layer_norm(self.k, x[rows, :], x[rows, :], gains[rows, :], shifts[rows, :], scratch, self.shape.epsilon)

    def pool(self, embedding: HbmView) -> None:
        """embedding [1, width] = the mean of x over the tokens, divided by its length.

        The array sums over tokens, a BF16 number and what it leaves of x one after the other, so that 16 bits count.
        """
        k, width = self.k, self.shape.width
        ones = k.sbuf("ones", partitions=self.tall, columns=1, dtype="bf16")
        k.vector.memset(ones[:, :], 1.0)
        mean, square, result = (tile[:1, :] for tile in self.vectors[:3])
        total, inverse = (k.sbuf(name, partitions=1, columns=1, dtype="fp32") for name in ("total", "inverse_length"))
        high, low = self.cast
        cuts = spans(width, min(self.linear.width, k.cfg.tensor.moving_max))
        targets = self.linear.targets(len(cuts), cuts[0].size)
        for i, (tile, x) in enumerate(zip(self.tiles, self.x, strict=True)):
            rows = slice(0, tile.size)
            k.vector.copy(high[rows, :], x[rows, :])
            k.vector.tensor_tensor(low[rows, :], x[rows, :], "subtract", high[rows, :])
            k.tensor.load(ones[rows, :])
            for part in (high, low):
                for cut, target in zip(cuts, targets, strict=True):
                    moving = part[rows, cut.start : cut.stop]
                    k.tensor.matmul(moving, target[:1, : cut.size], accumulate=i > 0 or part is low)
        for cut, target in zip(cuts, targets, strict=True):
            out = mean[:, cut.start : cut.stop]
            k.scalar.activation(out, target[:1, : cut.size], "copy", scale=1 / self.shape.tokens)
        k.scalar.activation(square, mean, "square", reduce="reset_reduce", store=total[:, :])
        k.scalar.activation(inverse[:, :], total[:, :], "rsqrt")
        k.scalar.activation(result, mean, "copy", scale=inverse[:, :])
        k.dma(embedding, result)

    def _operand(self, tiles: Sequence[Tile]) -> Operand:
        return lambda i, part: tiles[i][:, part.start : part.stop]

    def _transpose(self, source: TileView, tokens: Span) -> None:
        """x_t[w][:, tokens] = source[tokens, w]^T for all tiles of the width; source is BF16, partitions from 0."""
        k, turned = self.k, self.attention.attention.turned
        per = turned[0].columns // self.size
        groups = [self.wide[at : at + per] for at in range(0, len(self.wide), per)]
        for number, group in enumerate(groups):
            for i, cut in enumerate(group):
                out = turned[number % 2][: cut.size, i * self.size : i * self.size + tokens.size]
                k.tensor.load(source[:, cut.start : cut.stop])
                one = self.attention.attention.identity[: tokens.size, : tokens.size]
                k.tensor.matmul(one, out, part="transpose")
                where = self.x_t[cut.start // self.size][: cut.size, tokens.start : tokens.stop]
                k.scalar.copy(where, out)

    def _to_array(self) -> None:
        """x to x_t: cast and transposed."""
        for tile, x in zip(self.tiles, self.x, strict=True):
            cast = self.cast[self._casts % len(self.cast)][: tile.size, :]
            self._casts += 1
            self.k.scalar.copy(cast, x[: tile.size, :])
            self._transpose(cast, tile)

    def _add(self, bias: HbmView) -> None:
        """x += the bias of what will be added to it."""
        row = self.row(bias)
        for tile, x in zip(self.tiles, self.x, strict=True):
            rows = slice(0, tile.size)
            self.k.vector.tensor_tensor(x[rows, :], x[rows, :], "add", row[rows, :])

    def _accumulate(self, tokens: Span, columns: Span, sums: TileView) -> None:
        x = self.x[tokens.start // self.size][: tokens.size, columns.start : columns.stop]
        self.k.vector.tensor_tensor(x, sums, "add", x)
