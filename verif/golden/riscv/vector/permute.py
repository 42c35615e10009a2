"""Moves, slides, gathers and compress. Source: RVV 1.0, section 16."""

from collections.abc import Callable

import numpy as np

from verif.golden.riscv.vector.instruction import VectorInstruction
from verif.golden.riscv.vector.legality import Group, group, legal, mask_register
from verif.golden.riscv.vector.registers import Registers
from verif.golden.riscv.vector.vtype import VType

__all__ = ["PERMUTATIONS"]

Run = Callable[[], None]


def _number(i: VectorInstruction, registers: Registers) -> Callable[[], int]:
    """An offset or index, 32 bits whatever SEW is."""
    return (lambda: i.vs1) if i.form == "i" else (lambda: registers.x[i.vs1])


def _slide_up(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    if not legal(group(i.vd, t.sew, t), [group(i.vs2, t.sew, t)], i.masked, apart=True):
        return None
    state, number = registers.state, _number(i, registers)
    source, dest = state.elements(i.vs2, t.sew), state.elements(i.vd, t.sew)

    def run() -> None:
        n = state.vl
        offset = min(number(), n)
        active = state.mask(0, n)[offset:] if i.masked else np.True_
        np.copyto(dest[offset:n], source[: n - offset], where=active)

    return run


def _slide_down(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    if not legal(group(i.vd, t.sew, t), [group(i.vs2, t.sew, t)], i.masked):
        return None
    state, number, vlmax = registers.state, _number(i, registers), t.vlmax(registers.state.vlen)
    source, put = state.elements(i.vs2, t.sew)[:vlmax], registers.put(i, state.elements(i.vd, t.sew))

    def run() -> None:
        found = np.zeros(state.vl, source.dtype)
        part = source[number() :][: state.vl]
        found[: len(part)] = part
        put(state.vl, found)

    return run


def _slide_by_one(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vslide1up, vslide1down: x goes into the element that becomes free."""
    up = i.name == "vslide1up"
    if not legal(group(i.vd, t.sew, t), [group(i.vs2, t.sew, t)], i.masked, apart=up):
        return None
    state, second = registers.state, registers.second(i, t.sew, False)
    source, put = state.elements(i.vs2, t.sew), registers.put(i, state.elements(i.vd, t.sew))

    def run() -> None:
        n = state.vl
        new = np.asarray(second())[None]
        put(n, np.concatenate((new, source[: n - 1]) if up else (source[1:n], new))) if n else None

    return run


def _gather(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vrgather.vv and vrgatherei16."""
    width = 16 if i.name == "vrgatherei16" else t.sew
    if not legal(group(i.vd, t.sew, t), [group(i.vs2, t.sew, t), group(i.vs1, width, t)], i.masked, apart=True):
        return None
    state, vlmax = registers.state, t.vlmax(registers.state.vlen)
    source, index = state.elements(i.vs2, t.sew), state.elements(i.vs1, width)
    put = registers.put(i, state.elements(i.vd, t.sew))

    def run() -> None:
        at = index[: state.vl]
        inside = at < vlmax
        put(state.vl, np.where(inside, source[np.where(inside, at, 0)], 0))

    return run


def _splat(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vrgather.vx and .vi."""
    if not legal(group(i.vd, t.sew, t), [group(i.vs2, t.sew, t)], i.masked, apart=True):
        return None
    state, vlmax, number = registers.state, t.vlmax(registers.state.vlen), _number(i, registers)
    source, put = state.elements(i.vs2, t.sew), registers.put(i, state.elements(i.vd, t.sew))

    def run() -> None:
        put(state.vl, source[number()] if number() < vlmax else source.dtype.type(0))

    return run


def _compress(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    if not legal(group(i.vd, t.sew, t), [group(i.vs2, t.sew, t), mask_register(i.vs1)], False, apart=True):
        return None
    state = registers.state
    source, dest = state.elements(i.vs2, t.sew), state.elements(i.vd, t.sew)

    def run() -> None:
        found = source[: state.vl][state.mask(i.vs1, state.vl)]
        dest[: len(found)] = found

    return run


def _to_x(i: VectorInstruction, t: VType, registers: Registers) -> Run:
    """vmv.x.s, whatever vl is."""
    source = registers.state.elements(i.vs2, t.sew, True)
    return lambda: registers.set_x(i.vd, int(source[0]))


def _from_x(i: VectorInstruction, t: VType, registers: Registers) -> Run:
    """vmv.s.x"""
    state, second = registers.state, registers.second(i, t.sew, False)
    dest = state.elements(i.vd, t.sew)

    def run() -> None:
        if state.vl:
            dest[0] = second()

    return run


def _whole(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    """vmv<nr>r.v, whatever vl is; vtype must be one, since the elements are SEW wide."""
    log = i.fields.bit_length() - 1
    if not legal(Group(i.vd, t.sew, log), [Group(i.vs2, t.sew, log)], False):
        return None
    v = registers.state.v

    def run() -> None:
        v[i.vd : i.vd + i.fields] = v[i.vs2 : i.vs2 + i.fields].copy()

    return run


def _gather_any(i: VectorInstruction, t: VType, registers: Registers) -> Run | None:
    return (_gather if i.form == "v" else _splat)(i, t, registers)


PERMUTATIONS: dict[str, Callable[[VectorInstruction, VType, Registers], Run | None]] = {
    "vslideup": _slide_up,
    "vslidedown": _slide_down,
    "vslide1up": _slide_by_one,
    "vslide1down": _slide_by_one,
    "vrgather": _gather_any,
    "vrgatherei16": _gather_any,
    "vcompress": _compress,
    "vmv.x.s": _to_x,
    "vmv.s.x": _from_x,
    "vmvr": _whole,
}
"""By name, as ELEMENTWISE."""
