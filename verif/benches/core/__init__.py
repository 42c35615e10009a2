"""Benches of whole cores."""
