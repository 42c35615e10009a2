"""Rows between HBM and partitions: bursts, alignment, 16 bytes a cycle."""
