"""FP32 arithmetic: sums, products, comparisons, reductions, rounding to BF16.

`view.py` says what a code means. `_pipelined` has registers inside, `_comb` has none.
"""
