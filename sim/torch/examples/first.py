"""A first compiled layer on the RTL of `tiny`: python -m sim.torch.examples.first."""

import time

import torch
from torch import nn

import plexus

__all__ = ["main"]


def main() -> None:
    """Compile, run twice, say what came."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).eval()
    compiled = torch.compile(model, backend="plexus", dynamic=False, options={"config": "tiny"})
    with torch.no_grad():
        for turn in ("first", "second"):
            x, begin = torch.randn(4, 16), time.monotonic()
            error = (compiled(x) - model(x)).abs().max()
            call = plexus.torch.last()
            print(
                f"{turn} call: {call.results[0]}, largest difference to torch {error:.4f}, "
                f"{call.built} programs built, {time.monotonic() - begin:.1f} s"
            )


if __name__ == "__main__":
    main()
