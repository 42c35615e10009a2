"""Benches of the number hardware."""
