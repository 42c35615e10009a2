"""Arithmetic of processing elements: operands of every format, fused multiply-add, MX dot products.

Names that look alike: `product.py` is exact, `fp32/mul.py` rounds to FP32.
"""
