"""Models in plain PyTorch, compiled for the machine: python -m sim.torch.examples.NAME."""
