"""Benches of the base cells."""
