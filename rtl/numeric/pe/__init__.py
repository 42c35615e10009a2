"""Arithmetic of processing elements: operands of every format, fused multiply-add, MX dot products.

`exact_product.py` rounds nothing, for a fused addition; `fp32/multiply_comb.py` rounds to FP32.
"""
