"""Instructions that compute each element from those at its index. Source: RVV 1.0, sections 11 and 12."""

from collections.abc import Callable

import numpy as np

from verif.golden.riscv.vector.fixed_point import FIXED_POINT
from verif.golden.riscv.vector.instruction import VectorInstruction
from verif.golden.riscv.vector.integer import INTEGER_OPERATIONS, MULTIPLY_ADD, Operation
from verif.golden.riscv.vector.legality import Group, group, legal
from verif.golden.riscv.vector.registers import Registers
from verif.golden.riscv.vector.vtype import VType

__all__ = ["ELEMENTWISE"]

Run = Callable[[], None]


def _groups(i: VectorInstruction, t: VType, dest: int, vs2: int) -> tuple[Group, list[Group]]:
    """Destination and sources, of which two have `dest` and `vs2` times SEW."""
    sources = [group(i.vs2, vs2 * t.sew, t)]
    if i.form == "v":
        sources.append(group(i.vs1, t.sew, t))
    return group(i.vd, dest * t.sew, t), sources


def _integer(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    op: Operation = INTEGER_OPERATIONS[i.name]
    if not legal(*_groups(i, t, op.dest, op.vs2), i.masked):
        return None
    state, compute = registers.state, op.compute
    first = state.elements(i.vs2, op.vs2 * t.sew, op.signs[0] == "i")
    second = registers.second(i, t.sew, op.signs[1] == "i", op.amount)
    put = registers.put(i, state.elements(i.vd, op.dest * t.sew))

    def run() -> None:
        put(state.vl, compute(first[: state.vl], second()))

    return run


def _multiply_add(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """What vd holds is a source too."""
    op: Operation = MULTIPLY_ADD[i.name]
    dest, sources = _groups(i, t, op.dest, 1)
    if not legal(dest, [*sources, dest], i.masked):
        return None
    state, compute = registers.state, op.compute
    first = state.elements(i.vs2, t.sew, op.signs[0] == "i")
    second = registers.second(i, t.sew, op.signs[1] == "i")
    old = state.elements(i.vd, op.dest * t.sew)
    put = registers.put(i, old)

    def run() -> None:
        put(state.vl, compute(first[: state.vl], second(), old[: state.vl]))

    return run


def _fixed_point(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vxsat is set by active elements alone."""
    op: Operation = FIXED_POINT[i.name]
    if not legal(*_groups(i, t, 1, op.vs2), i.masked):
        return None
    state, compute = registers.state, op.compute
    first = state.elements(i.vs2, op.vs2 * t.sew, op.signs[0] == "i")
    second = registers.second(i, t.sew, op.signs[1] == "i", op.amount)
    put = registers.put(i, state.elements(i.vd, t.sew))

    def run() -> None:
        result, clipped = compute(first[: state.vl], second(), state.vxrm)
        if clipped is not None:
            if i.masked:
                clipped = clipped & state.mask(0, state.vl)
            state.vxsat |= int(clipped.any())
        put(state.vl, result)

    return run


def _extension(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vzext, vsext: elements of vs2 are a half or a quarter of SEW wide."""
    width = t.sew // int(i.name[-1])
    if width < 8 or not legal(group(i.vd, t.sew, t), [group(i.vs2, width, t)], i.masked):
        return None
    state = registers.state
    source = state.elements(i.vs2, width, i.name[1] == "s")
    put = registers.put(i, state.elements(i.vd, t.sew))

    def run() -> None:
        put(state.vl, source[: state.vl].astype(np.int64))

    return run


def _add_with_carry(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vadc, vsbc: v0 is no mask but an operand, a bit an element."""
    if not legal(*_groups(i, t, 1, 1), True):
        return None
    state, sign = registers.state, 1 if i.name == "vadc" else -1
    first, dest = state.elements(i.vs2, t.sew), state.elements(i.vd, t.sew)
    second = registers.second(i, t.sew, False)

    def run() -> None:
        n = state.vl
        dest[:n] = first[:n].astype(np.int64) + sign * (np.int64(1) * second() + state.mask(0, n))

    return run


def _move(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vmv.v; its vs2 is none."""
    if not legal(group(i.vd, t.sew, t), [group(i.vs1, t.sew, t)] if i.form == "v" else [], False):
        return None
    state = registers.state
    dest, second = state.elements(i.vd, t.sew), registers.second(i, t.sew, False)

    def run() -> None:
        dest[: state.vl] = second()

    return run


def _merge(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    if not legal(*_groups(i, t, 1, 1), True):
        return None
    state = registers.state
    first, dest = state.elements(i.vs2, t.sew), state.elements(i.vd, t.sew)
    second = registers.second(i, t.sew, False)

    def run() -> None:
        n = state.vl
        dest[:n] = np.where(state.mask(0, n), second(), first[:n])

    return run


ELEMENTWISE: dict[str, Callable[[VectorInstruction, VType, Registers], Run | None]] = {
    **dict.fromkeys(INTEGER_OPERATIONS, _integer),
    **dict.fromkeys(MULTIPLY_ADD, _multiply_add),
    **dict.fromkeys(FIXED_POINT, _fixed_point),
    **dict.fromkeys(("vzext.vf2", "vzext.vf4", "vsext.vf2", "vsext.vf4"), _extension),
    **dict.fromkeys(("vadc", "vsbc"), _add_with_carry),
    "vmv.v": _move,
    "vmerge": _merge,
}
"""By name: what an instruction does while vtype is what it is; None if it is illegal then."""
