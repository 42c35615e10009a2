"""Benches of DMA and endpoint."""
