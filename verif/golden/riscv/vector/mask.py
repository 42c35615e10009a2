"""Instructions that write or read masks. Source: RVV 1.0, sections 11.4 (carries), 11.8 (compares), 15."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verif.golden.riscv.vector.instruction import VectorInstruction
from verif.golden.riscv.vector.legality import group, legal, mask_register
from verif.golden.riscv.vector.registers import Registers
from verif.golden.riscv.vector.vtype import VType

__all__ = ["MASKS"]

Run = Callable[[], None]
Array = NDArray[Any]

COMPARES: dict[str, tuple[np.ufunc, bool]] = {
    "vmseq": (np.equal, False), "vmsne": (np.not_equal, False), "vmsltu": (np.less, False), "vmslt": (np.less, True),
    "vmsleu": (np.less_equal, False), "vmsle": (np.less_equal, True), "vmsgtu": (np.greater, False),
    "vmsgt": (np.greater, True),
}  # fmt: skip
LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "vmand": lambda a, b: a & b, "vmnand": lambda a, b: ~(a & b), "vmandn": lambda a, b: a & ~b,
    "vmxor": lambda a, b: a ^ b, "vmor": lambda a, b: a | b, "vmnor": lambda a, b: ~(a | b),
    "vmorn": lambda a, b: a | ~b, "vmxnor": lambda a, b: ~(a ^ b),
}  # fmt: skip


def _legal_compare(i: VectorInstruction, t: VType) -> bool:
    sources = [group(i.vs2, t.sew, t)] + ([group(i.vs1, t.sew, t)] if i.form == "v" else [])
    return legal(mask_register(i.vd), sources, i.masked)


def _compare(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    if not _legal_compare(i, t):
        return None
    state = registers.state
    compute, signed = COMPARES[i.name]
    first, second = state.elements(i.vs2, t.sew, signed), registers.second(i, t.sew, signed)

    def run() -> None:
        registers.put_mask(i, i.vd, compute(first[: state.vl], second()))

    return run


def _carry(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vmadc, vmsbc: with vm 0, v0 is an operand; all elements are written."""
    if not _legal_compare(i, t):
        return None
    state, subtracts = registers.state, i.name == "vmsbc"
    first, second = state.elements(i.vs2, t.sew), registers.second(i, t.sew, False)

    def run() -> None:
        n = state.vl
        carry = state.mask(0, n) if i.masked else np.int64(0)
        other = np.int64(1) * second() + carry
        a = first[:n].astype(np.int64)
        state.set_mask(i.vd, (a - other < 0) if subtracts else (a + other) >> t.sew > 0)

    return run


def _logic(i: VectorInstruction, t: VType, registers: Registers) -> Run:
    state, compute = registers.state, LOGIC[i.name]

    def run() -> None:
        state.set_mask(i.vd, compute(state.mask(i.vs2, state.vl), state.mask(i.vs1, state.vl)))

    return run


def _active(i: VectorInstruction, registers: Registers) -> Array:
    """Bits of vs2 up to vl, 0 where the mask is."""
    state = registers.state
    bits = state.mask(i.vs2, state.vl)
    return bits & state.mask(0, state.vl) if i.masked else bits


def _count(i: VectorInstruction, t: VType, registers: Registers) -> Run:
    return lambda: registers.set_x(i.vd, int(_active(i, registers).sum()))


def _find(i: VectorInstruction, t: VType, registers: Registers) -> Run:
    def run() -> None:
        bits = _active(i, registers)
        registers.set_x(i.vd, int(bits.argmax()) if bits.any() else -1)

    return run


def _before_first(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vmsbf, vmsif, vmsof."""
    if not legal(mask_register(i.vd), [mask_register(i.vs2)], i.masked, apart=True):
        return None

    def run() -> None:
        bits = _active(i, registers)
        until = np.logical_or.accumulate(bits)  # from the first one on
        including = ~until | (bits & (np.cumsum(bits) == 1))
        kinds = {"vmsbf": ~until, "vmsif": including, "vmsof": until & including}
        registers.put_mask(i, i.vd, kinds[i.name])

    return run


def _iota(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    if not legal(group(i.vd, t.sew, t), [mask_register(i.vs2)], i.masked, apart=True):
        return None
    state = registers.state
    put = registers.put(i, state.elements(i.vd, t.sew))

    def run() -> None:
        bits = _active(i, registers).astype(np.int64)
        put(state.vl, np.cumsum(bits) - bits)

    return run


def _index(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    if not legal(group(i.vd, t.sew, t), [], i.masked):
        return None
    state = registers.state
    put = registers.put(i, state.elements(i.vd, t.sew))
    return lambda: put(state.vl, np.arange(state.vl))


MASKS: dict[str, Callable[[VectorInstruction, VType, Registers], Run | None]] = {
    **dict.fromkeys(COMPARES, _compare),
    **dict.fromkeys(("vmadc", "vmsbc"), _carry),
    **dict.fromkeys(LOGIC, _logic),
    **dict.fromkeys(("vmsbf", "vmsif", "vmsof"), _before_first),
    "vcpop": _count,
    "vfirst": _find,
    "viota": _iota,
    "vid": _index,
}
"""By name, as ELEMENTWISE."""
