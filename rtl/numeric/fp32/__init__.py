"""FP32 arithmetic: sums, products, comparisons, reductions, rounding to BF16.

Names that look alike: `add.py` is the adder with registers, `sum.py` the one without.
"""
