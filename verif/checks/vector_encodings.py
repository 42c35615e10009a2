"""Every encoding of Zve32x, and with which vtype it is an instruction (RVV 1.0, sections 5.2, 7, 10 to 16, 18.2)."""

import random
from dataclasses import dataclass

from verif.checks.vector_words import ARITHMETIC, IVI, IVV, IVX, LOAD, MVV, MVX, STORE

__all__ = ["Encoding", "encodings"]

_ELEN = 32


@dataclass(frozen=True)
class Encoding:
    """`fixed`: bits of the word but for vd, vs1 or rs1, vs2 and vm; those that are given, too.

    wide: log2 of the largest group of registers, beside LMUL's. index, element: bits of a memory operand's, else 0.
    fields: of a segment. mask: vm, if it is no choice.
    """

    name: str
    fixed: int
    vs1: int | None = None
    vs2: int | None = None
    mask: int | None = None
    widens: bool = False
    reduces: bool = False
    divides: int = 1  # the source has SEW / divides bits
    element: int = 0
    index: int = 0
    fields: int = 1
    whole: int = 0  # registers, whatever vtype says

    def exists(self, sew: int, lmul: int) -> bool:
        """With elements of `sew` bits and log2 of LMUL. A group has an eighth of a register to eight."""
        if self.whole:
            return True
        if self.widens:
            return 2 * sew <= _ELEN and (self.reduces or lmul < 3)
        if self.divides > 1:
            return sew // self.divides >= 8 and lmul - _log2(self.divides) >= -3
        data, groups = lmul, []
        if self.element:
            data = lmul + _log2(self.element) - _log2(sew)
            groups.append(data)
        if self.index:
            groups.append(lmul + _log2(self.index) - _log2(sew))
        return all(-3 <= group <= 3 for group in groups) and self.fields << max(data, 0) <= 8

    def word(self, rng: random.Random, lmul: int, *, safe: bool) -> int:
        """Registers are aligned to twice LMUL; `safe`: in groups of eight, apart, without a mask if that may be."""
        apart = (8, 16, 24)
        vd, vs1, vs2 = rng.sample(apart, 3) if safe else (rng.getrandbits(5) & (-2 << max(lmul, 0)) for _ in apart)
        if self.whole and not safe:
            vd, vs2 = vd & -self.whole & 31, vs2 & -self.whole & 31
        mask = self.mask if self.mask is not None else 1 if safe else rng.getrandbits(1)
        vs1, vs2 = vs1 if self.vs1 is None else self.vs1, vs2 if self.vs2 is None else self.vs2
        return self.fixed | mask << 25 | vs2 << 20 | vs1 << 15 | vd << 7


def _log2(number: int) -> int:
    return number.bit_length() - 1


def _op(funct6: int, funct3: int) -> int:
    return funct6 << 26 | funct3 << 12 | ARITHMETIC


def _arithmetic() -> list[Encoding]:
    found: list[Encoding] = []

    def add(forms: str, *codes: int, kinds: dict[str, int] | None = None, **more: int | bool) -> None:
        for code in codes:
            for form in forms:
                funct3 = (kinds or {"v": IVV, "x": IVX, "i": IVI})[form]
                found.append(Encoding(f"{code:#04x} of funct3 {funct3}", _op(code, funct3), **more))  # type: ignore[arg-type]

    multiply = {"v": MVV, "x": MVX}
    add("vxi", 0x00, 0x09, 0x0A, 0x0B, 0x0C, 0x11, 0x18, 0x19, 0x1C, 0x1D, 0x20, 0x21, 0x25, 0x28, 0x29, 0x2A, 0x2B)
    add("vx", 0x02, 0x04, 0x05, 0x06, 0x07, 0x13, 0x1A, 0x1B, 0x22, 0x23, 0x27)
    add("xi", 0x03, 0x0E, 0x0F, 0x1E, 0x1F)
    add("vxi", 0x10, 0x17, mask=0)  # vadc, vmerge
    add("vx", 0x12, mask=0)  # vsbc
    add("vxi", 0x17, mask=1, vs2=0)  # vmv.v
    add("vxi", 0x2C, 0x2D, 0x2E, 0x2F, widens=True)
    add("v", 0x30, 0x31, widens=True, reduces=True)
    add("v", 0x0E, index=16)  # vrgatherei16
    found.extend(Encoding(f"vmv{n}r.v", _op(0x27, IVI), vs1=n - 1, mask=1, whole=n) for n in (1, 2, 4, 8))
    add("v", *range(8), kinds=multiply)
    add("vx", 0x08, 0x09, 0x0A, 0x0B, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, kinds=multiply)
    add("vx", 0x29, 0x2B, 0x2D, 0x2F, kinds=multiply)
    add("x", 0x0E, 0x0F, kinds=multiply)
    add("v", 0x17, *range(0x18, 0x20), kinds=multiply, mask=1)  # vcompress, logic of masks
    add("vx", *range(0x30, 0x38), 0x38, 0x3A, 0x3B, 0x3C, 0x3D, 0x3F, kinds=multiply, widens=True)
    add("x", 0x3E, kinds=multiply, widens=True)
    found.append(Encoding("vmv.s.x", _op(0x10, MVX), vs2=0, mask=1))
    found.append(Encoding("vmv.x.s", _op(0x10, MVV), vs1=0, mask=1))
    found.extend(Encoding(f"VWXUNARY {n}", _op(0x10, MVV), vs1=n) for n in (16, 17))
    found.extend(Encoding(f"VXUNARY {n}", _op(0x12, MVV), vs1=n, divides=4 if n < 6 else 2) for n in (4, 5, 6, 7))
    found.extend(Encoding(f"VMUNARY {n}", _op(0x14, MVV), vs1=n) for n in (1, 2, 3, 16))
    found.append(Encoding("vid.v", _op(0x14, MVV), vs1=17, vs2=0))
    return found


def _memory() -> list[Encoding]:
    """x5 has the address, x6 the stride."""
    found: list[Encoding] = []
    widths = {8: 0, 16: 5, 32: 6}
    for opcode, kind in ((LOAD, "load"), (STORE, "store")):
        for bits, width in widths.items():
            for fields in range(1, 9):
                base, name = opcode | width << 12 | fields - 1 << 29, f"{kind}, {bits} bits, {fields} fields"
                found.append(Encoding(f"{name}, unit", base, vs1=5, vs2=0, element=bits, fields=fields))
                found.append(Encoding(f"{name}, strided", base | 2 << 26, vs1=5, vs2=6, element=bits, fields=fields))
                for order in (1, 3):
                    indexed = f"{name}, indexed {order}"
                    found.append(Encoding(indexed, base | order << 26, vs1=5, index=bits, fields=fields))
                if opcode == LOAD:
                    first = f"{name}, first may fault"
                    found.append(Encoding(first, base, vs1=5, vs2=16, element=bits, fields=fields))
            for whole in (1, 2, 4, 8):
                if opcode == LOAD or bits == 8:
                    base, name = opcode | width << 12 | whole - 1 << 29, f"{kind}, {whole} registers, {bits} bits"
                    found.append(Encoding(name, base, vs1=5, vs2=8, mask=1, whole=whole))
        found.append(Encoding(f"{kind}, mask", opcode, vs1=5, vs2=11, mask=1))
    return found


def encodings() -> list[Encoding]:
    """All of them, but those that set vtype."""
    return _arithmetic() + _memory()
