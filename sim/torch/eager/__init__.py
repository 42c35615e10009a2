"""The device `plexus`: tensors whose operators are programs, one each."""
