"""Reductions to element 0 of a register. Source: RVV 1.0, section 14."""

from collections.abc import Callable

import numpy as np

from verif.golden.riscv.vector.instruction import VectorInstruction
from verif.golden.riscv.vector.legality import group, legal, scalar
from verif.golden.riscv.vector.registers import Registers
from verif.golden.riscv.vector.vtype import ELEN, VType

__all__ = ["REDUCTIONS"]

OPERATIONS: dict[str, tuple[np.ufunc, bool, int]] = {
    "vredsum": (np.add, False, 1), "vredand": (np.bitwise_and, False, 1), "vredor": (np.bitwise_or, False, 1),
    "vredxor": (np.bitwise_xor, False, 1), "vredminu": (np.minimum, False, 1), "vredmin": (np.minimum, True, 1),
    "vredmaxu": (np.maximum, False, 1), "vredmax": (np.maximum, True, 1), "vwredsumu": (np.add, False, 2),
    "vwredsum": (np.add, True, 2),
}  # fmt: skip
"""Function, whether elements are signed, width of the scalar in SEW."""


def _reduction(i: VectorInstruction, t: VType, registers: Registers) -> Callable[[], None] | None:
    compute, signed, factor = OPERATIONS[i.name]
    width = factor * t.sew
    if width > ELEN or not legal(scalar(i.vd, width), [group(i.vs2, t.sew, t), scalar(i.vs1, width)], i.masked):
        return None
    state = registers.state
    elements = state.elements(i.vs2, t.sew, signed)
    initial, dest = state.elements(i.vs1, width, signed), state.elements(i.vd, width, signed)

    def run() -> None:
        n = state.vl
        if n:
            active = elements[:n][state.mask(0, n)] if i.masked else elements[:n]
            dest[0] = compute.reduce(active, dtype=dest.dtype, initial=initial[0])

    return run


REDUCTIONS: dict[str, Callable[[VectorInstruction, VType, Registers], Callable[[], None] | None]] = dict.fromkeys(
    OPERATIONS, _reduction
)
"""By name, as ELEMENTWISE."""
