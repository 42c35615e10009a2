"""Benches of the GPSIMD engine."""
