"""Kernels in NKI, for tests and to begin with."""
