"""A first compiled layer: python -m sim.torch.examples.first --config tiny."""

import torch
from torch import nn

from sim.torch.examples.compare import main

if __name__ == "__main__":
    torch.manual_seed(0)
    main("first", nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)), (torch.randn(4, 16),))
