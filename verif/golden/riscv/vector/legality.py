"""Which register groups an instruction may have. Source: RVV 1.0, section 5.2 "Vector Operands" and 5.3 on masks."""

from collections.abc import Sequence
from dataclasses import dataclass

from verif.golden.riscv.vector.vtype import ELEN, VType

__all__ = ["Group", "group", "legal", "mask_register", "scalar"]


@dataclass(frozen=True, slots=True)
class Group:
    """Registers from `first` on: EEW in bits, 1 for a mask, log2 of EMUL, and how many such groups there are."""

    first: int
    eew: int
    emul: int
    fields: int = 1
    element: bool = False
    """Only element 0 of one register, as reductions have it."""

    @property
    def end(self) -> int:
        """The register behind the last."""
        return self.first + self.fields * (1 << max(self.emul, 0))

    @property
    def exists(self) -> bool:
        """The width exists, so do the registers, and the first is aligned."""
        wide = self.eew in (1, 8, 16, ELEN) and -3 <= self.emul <= 3
        few = wide and (self.fields << max(self.emul, 0)) <= 8 and self.end <= 32
        return few and self.first % (1 << max(self.emul, 0)) == 0

    def meets(self, other: "Group") -> bool:
        """They share a register."""
        return self.first < other.end and other.first < self.end


def group(first: int, eew: int, vtype: VType, fields: int = 1) -> Group:
    """As many elements as vtype has, `eew` bits each."""
    return Group(first, eew, vtype.lmul + eew.bit_length() - vtype.sew.bit_length(), fields)


def scalar(register: int, eew: int) -> Group:
    """Element 0 of a register."""
    return Group(register, eew, 0, element=True)


def mask_register(register: int) -> Group:
    """A register with a bit an element."""
    return Group(register, 1, 0)


V0 = mask_register(0)


def _may_overlap(dest: Group, source: Group) -> bool:
    if dest.eew == source.eew or not dest.meets(source):
        return True
    if dest.eew < source.eew:
        return dest.first == source.first
    return source.emul >= 0 and source.end == dest.end


def legal(dest: Group | None, sources: Sequence[Group], masked: bool, *, apart: bool = False) -> bool:
    """Whether an instruction may write `dest` and read `sources`; `apart`: it must not write what it reads."""
    if not all(one.exists for one in (*sources, *((dest,) if dest else ()))):
        return False
    read = (*sources, V0) if masked else sources
    if any(one.eew != other.eew and one.meets(other) for one in read for other in read):
        return False
    if dest is None or dest.element:
        return True
    if masked and dest.eew > 1 and dest.first == 0:
        return False
    if apart and any(dest.meets(one) for one in read):
        return False
    return all(_may_overlap(dest, one) for one in sources)
