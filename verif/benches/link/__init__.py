"""Benches of a link's port."""
