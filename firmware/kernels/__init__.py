"""Kernels, each a function that builds a Program."""
