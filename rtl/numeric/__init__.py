"""Arithmetic of numbers, without any protocol: adders, dot products, conversions, functions (docs/numerics.md).

Names that look alike: `add.py` is the FP32 adder with registers, `sum.py` the one without; `mul.py` multiplies FP32 and
rounds, `product.py` is the exact product of two operands of a processing element.
"""
