"""A block with a mixture of experts: each token goes to the two experts of the largest scores. Which these are is the
host's work (aten.topk); scores, experts and their sum are the machine's."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sim.torch.examples.compare import main

__all__ = ["Experts", "inputs"]


class Experts(nn.Module):
    """x [tokens, width] to the same. Every expert sees every token; those that were not chosen have the share 0."""

    def __init__(self, width: int = 64, hidden: int = 128, experts: int = 4, chosen: int = 2):
        super().__init__()
        self.chosen = chosen
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, hidden) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) / hidden**0.5)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        scores = self.router(h)
        least = scores.topk(self.chosen, dim=-1).values[:, -1:]
        shares = scores.masked_fill(scores < least, -1e30).softmax(dim=-1)
        hidden = F.silu(torch.matmul(h, self.up))
        return x + (torch.bmm(hidden, self.down) * shares.t()[:, :, None]).sum(dim=0)


def inputs(tokens: int = 32, width: int = 64) -> tuple[Tensor, ...]:
    """Random tokens."""
    return (torch.randn(tokens, width),)


if __name__ == "__main__":
    torch.manual_seed(0)
    main("moe", Experts(), inputs())
