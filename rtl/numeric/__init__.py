"""Arithmetic of numbers, without any protocol (docs/numerics.md): what FP32 needs, processing elements, formats,
functions."""
