"""Moves data between HBM, SBUF and other cores: rings of descriptors, movers, the endpoint for packets (docs/dma.md,
docs/endpoint.md). `dma.py` connects all of it."""
