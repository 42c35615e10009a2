"""Benches of the tensor engine."""
