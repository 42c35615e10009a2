"""vsetvli, vsetivli, vsetvl. Source: RVV 1.0, section 6."""

from collections.abc import Callable

from verif.golden.riscv.vector.registers import Registers
from verif.golden.riscv.vector.vtype import VILL, VType

__all__ = ["configure"]


def configure(word: int, registers: Registers) -> Callable[[], None]:
    """What such an instruction does. With rd and rs1 x0, vl stays, or becomes VLMAX if that is now smaller."""
    rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    state, x = registers.state, registers.x
    from_x = word >> 25 == 0x40
    constant = word >> 31 and word >> 30 & 1

    def run() -> None:
        bits = x[rs2] if from_x else word >> 20 & (0x3FF if constant else 0x7FF)
        wanted = rs1 if constant else x[rs1] if rs1 else None if rd else state.vl
        vtype = VType.of(bits)
        if vtype is None:
            state.vtype, state.vl = VILL, 0
        else:
            vlmax = vtype.vlmax(state.vlen)
            state.vtype, state.vl = bits, vlmax if wanted is None else min(wanted, vlmax)
        registers.set_x(rd, state.vl)

    return run
