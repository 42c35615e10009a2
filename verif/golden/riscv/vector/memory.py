"""Vector loads and stores. Source: RVV 1.0, sections 7 and 8.

Elements come in increasing order, in one of them fields in increasing order. Where all of them lie in one RAM they move
at once, else one by one as scalar accesses would.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verif.golden.riscv.memory import Memory
from verif.golden.riscv.traps import Trap
from verif.golden.riscv.vector.instruction import VectorInstruction
from verif.golden.riscv.vector.legality import Group, group, legal
from verif.golden.riscv.vector.registers import Registers
from verif.golden.riscv.vector.vtype import VType

__all__ = ["memory_action"]

LIMIT = 1 << 32
Indices = NDArray[np.int64]


class _Access:
    """A load or store of elements of `size` bytes between memory and `data`. `first`: fault-only-first."""

    def __init__(self, registers: Registers, memory: Memory, i: VectorInstruction, data: Group):
        self.state, self.x, self.memory, self.i = registers.state, registers.x, memory, i
        verb, kind = i.name.split()
        self.loads, self.first = verb == "load", kind == "first"
        self.size = data.eew // 8
        self.type = np.dtype(f"<u{self.size}")
        self.elements: NDArray[Any] = self.state.elements(data.first, data.eew)
        apart = (1 << max(data.emul, 0)) * self.state.vlen // data.eew  # elements from a field to the next
        self.fields: Indices = np.arange(data.fields) * apart
        self.field_bytes: Indices = np.arange(data.fields) * self.size

    def contiguous(self, base: int, begin: int, end: int) -> bool:
        """Move elements `begin` to `end` - 1 that lie side by side from `base` on; False if they do not in one RAM."""
        low, high = base + begin * self.size, base + end * self.size
        if base % self.size or high > LIMIT:
            return False
        found = self.memory.span(low, high - 1, not self.loads)
        if found is None:
            return False
        there = np.frombuffer(found, self.type)
        if self.loads:
            self.elements[begin:end] = there
        else:
            there[:] = self.elements[begin:end]
        return True

    def move(self, base: int, offsets: Indices, begin: int) -> None:
        """Move elements from `begin` on, each `offsets` bytes from `base`. Errors: Trap, with vstart."""
        which = np.arange(begin, len(offsets))
        if self.i.masked:
            which = which[self.state.mask(0, len(offsets))[begin:]]
        if not len(which):
            return
        addresses = (base + offsets[which][:, None] + self.field_bytes) % LIMIT
        places = which[:, None] + self.fields
        if not self._together(addresses.reshape(-1), places.reshape(-1)):
            self._singly(which.tolist(), addresses.tolist(), places.tolist())

    def _together(self, addresses: Indices, places: Indices) -> bool:
        low, high = int(addresses.min()), int(addresses.max()) + self.size - 1
        if (addresses & self.size - 1).any() or (found := self.memory.span(low, high, not self.loads)) is None:
            return False
        there, at = np.frombuffer(found, self.type), (addresses - low) // self.size
        if self.loads:
            self.elements[places] = there[at]
        else:
            there[at] = self.elements[places]  # of two in one place the last stays
        return True

    def _singly(self, which: list[int], addresses: list[list[int]], places: list[list[int]]) -> None:
        for number, of_fields, to in zip(which, addresses, places, strict=True):
            try:
                for address, place in zip(of_fields, to, strict=True):
                    if self.loads:
                        self.elements[place] = self.memory.load(address, self.size)
                    else:
                        self.memory.store(address, self.size, int(self.elements[place]))
            except Trap:
                if self.first and number:
                    self.state.vl = number
                    return
                self.state.vstart = number
                raise


def _groups(i: VectorInstruction, t: VType | None, kind: str) -> tuple[Group, list[Group]] | None:
    """Data and, of indexed ones, indices; None if there is no vtype and the instruction depends on it."""
    if kind == "whole":
        return Group(i.vd, i.eew, i.fields.bit_length() - 1), []
    if t is None:
        return None
    if kind == "mask":
        return Group(i.vd, 8, 0), []
    if kind == "indexed":
        return group(i.vd, t.sew, t, i.fields), [group(i.vs2, i.eew, t)]
    return group(i.vd, i.eew, t, i.fields), []


def memory_action(
    i: VectorInstruction, t: VType | None, registers: Registers, memory: Memory
) -> Callable[[], None] | None:
    """What a load or store does while vtype is `t`, from vstart on; None if it is illegal then."""
    verb, kind = i.name.split()
    found = _groups(i, t, kind)
    if found is None:
        return None
    data, indices = found
    dest, sources = (data, indices) if verb == "load" else (None, [data, *indices])
    if not legal(dest, sources, i.masked, apart=bool(indices) and i.fields > 1):
        return None
    state, x, access = registers.state, registers.x, _Access(registers, memory, i, data)
    whole = i.fields * state.vlen // i.eew
    step = access.size * data.fields
    side_by_side = kind in ("unit", "first", "mask", "whole") and data.fields == 1 and not i.masked
    index = state.elements(i.vs2, i.eew)

    def run() -> None:
        begin, end = state.vstart, whole if kind == "whole" else -(-state.vl // 8) if kind == "mask" else state.vl
        if begin >= end:
            return
        base = x[i.vs1]
        if side_by_side and access.contiguous(base, begin, end):
            return
        if indices:
            offsets = index[:end].astype(np.int64)
        else:
            offsets = np.arange(end, dtype=np.int64) * (x[i.vs2] if kind == "strided" else step)
        access.move(base, offsets, begin)

    return run
