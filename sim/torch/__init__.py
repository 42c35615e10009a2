"""PyTorch on the machine: a backend of torch.compile and the device `plexus`. Nothing here is imported without torch;
plexus.py finds it by name. docs/pytorch.md explains it."""
