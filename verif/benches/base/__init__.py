"""Benches of the cells in rtl/base."""
