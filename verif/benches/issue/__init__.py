"""Benches of instruction issue."""
