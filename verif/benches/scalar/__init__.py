"""Benches of the scalar engine."""
