"""A block as Llama's, with random weights: RMSNorm, attention of grouped heads, RoPE, gated FFN."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sim.torch.examples.compare import main

__all__ = ["Block", "inputs", "rotated"]


def rotated(x: Tensor, base: float = 10_000.0) -> Tensor:
    """RoPE of [*, tokens, head]: each pair (i, i + head / 2) is turned by its token's angle."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = torch.arange(x.shape[-2], dtype=torch.float32)[:, None] * rates
    first, second = x[..., :half], x[..., half:]
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Block(nn.Module):
    """x [tokens, width] to the same."""

    def __init__(self, width: int = 128, heads: int = 4, groups: int = 2, hidden: int = 352):
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.query, self.output = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * self.head, bias=False)
        self.value = nn.Linear(width, groups * self.head, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(1, -1, heads, self.head).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm1(x)
        q, k = rotated(self._split(self.query(h), self.heads)), rotated(self._split(self.key(h), self.groups))
        v = self._split(self.value(h), self.groups)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.output(context.transpose(1, 2).reshape(x.shape))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def inputs(tokens: int = 32, width: int = 128) -> tuple[Tensor, ...]:
    """Random tokens."""
    return (torch.randn(tokens, width),)


if __name__ == "__main__":
    torch.manual_seed(0)
    main("llama", Block(), inputs())
