"""How far a result may be from torch's on the CPU: said once, for the tests and for the page."""

from dataclasses import dataclass

__all__ = ["BITS", "EXACT", "FUNCTION", "PRODUCT", "ROUNDED", "Bound"]


@dataclass(frozen=True, slots=True)
class Bound:
    """|result - torch's| <= relative x (|torch's| + the largest |torch's| of the tensor x spread) + absolute."""

    name: str
    relative: float
    absolute: float
    spread: float
    about: str


BITS = Bound("bits", 0.0, 0.0, 0.0, "the same bits")
EXACT = Bound("1e-6", 1e-6, 1e-30, 0.0, "one or two roundings to FP32, relative")
ROUNDED = Bound("1e-5", 1e-5, 1e-6, 1.0, "sums in another order: 1e-5 of the largest")
FUNCTION = Bound("2e-5", 2e-5, 2e-6, 1.0, "functions from tables: 2e-5 of the largest")
PRODUCT = Bound("2e-2", 2e-2, 1e-6, 1.0, "operands rounded to BF16: 2e-2 of the largest; products=fp32: 1e-5")
