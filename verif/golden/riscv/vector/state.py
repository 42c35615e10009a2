"""Vector registers and the registers that go with them."""

import numpy as np
from numpy.typing import NDArray

from verif.golden.riscv.vector.vtype import VILL

__all__ = ["VectorState"]

VLENS = (128, 256, 512)


class VectorState:
    """`v[register, byte]`, which may be changed in place, and the values of CSRs. `status` is VS of mstatus.

    At the start vector registers and `vl` are 0, and there is no configuration: vtype has vill.
    """

    def __init__(self, vlen: int):
        """Errors: ValueError for a length that no core has."""
        if vlen not in VLENS:
            raise ValueError(f"VLEN is 128, 256 or 512, not {vlen}")
        self.vlen = vlen
        self.v = np.zeros((32, vlen // 8), np.uint8)
        flat = self.v.reshape(-1)
        self._elements = {
            (8 * size, signed): flat.view(f"<{'i' if signed else 'u'}{size}")
            for size in (1, 2, 4)
            for signed in (False, True)
        }
        self.vl = self.vstart = self.vxsat = self.vxrm = self.status = 0
        self.vtype = VILL

    def elements(self, first: int, bits: int, signed: bool = False) -> NDArray[np.integer]:
        """Elements from register `first` to the last one; writing them changes `v`."""
        return self._elements[bits, signed][first * self.vlen // bits :]

    def mask(self, register: int, count: int) -> NDArray[np.bool_]:
        """The first bits of a register."""
        return np.unpackbits(self.v[register], count=count, bitorder="little").view(np.bool_)

    def set_mask(self, register: int, bits: NDArray[np.bool_]) -> None:
        """Write the first bits of a register; the others stay."""
        whole = np.unpackbits(self.v[register], bitorder="little")
        whole[: len(bits)] = bits
        self.v[register] = np.packbits(whole, bitorder="little")
