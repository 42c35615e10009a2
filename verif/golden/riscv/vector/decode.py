"""Which vector instruction a word is. Source: RVV 1.0, sections 5, 6, 7 and "Vector Instruction Listing".

What is reserved whatever vtype holds is refused here, the rest in `legality`.
"""

from verif.golden.riscv.vector.instruction import VectorInstruction
from verif.golden.riscv.vector.table import INTEGER, MULTIPLY, UNARY

__all__ = ["decode_vector"]

LOAD, STORE, ARITHMETIC = 0x07, 0x27, 0x57
WIDTHS = {0: 8, 5: 16, 6: 32}
FORMS = {0: "v", 2: "v", 3: "i", 4: "x", 6: "x"}  # funct3: OPIVV, OPMVV, OPIVI, OPIVX, OPMVX
CONFIGURE, FLOAT = 7, (1, 5)
ALWAYS_MASKED = ("vadc", "vsbc")
NEVER_MASKED = (
    "vcompress", "vmv.x.s", "vmandn", "vmand", "vmor", "vmxor", "vmorn", "vmnand", "vmnor", "vmxnor",
)  # fmt: skip
STRIDES = {0: "unit", 1: "indexed", 2: "strided", 3: "indexed"}  # mop
WHOLE = (1, 2, 4, 8)


def decode_vector(word: int) -> VectorInstruction | None:
    """None for a word that is no vector instruction, or a reserved one."""
    if word & 0x7F == ARITHMETIC:
        funct3 = word >> 12 & 7
        if funct3 in FLOAT:
            return None
        return _configure(word) if funct3 == CONFIGURE else _arithmetic(word, funct3)
    return _memory(word) if word & 0x7F in (LOAD, STORE) else None


def _made(word: int, name: str, form: str, eew: int = 0, fields: int = 1) -> VectorInstruction:
    masked = not word >> 25 & 1
    return VectorInstruction(name, form, word >> 7 & 31, word >> 15 & 31, word >> 20 & 31, masked, eew, fields)


def _configure(word: int) -> VectorInstruction | None:
    """Of these vd is rd; `configure` reads the rest of the word itself."""
    if not word >> 31:
        return _made(word, "vsetvli", "x")
    if word >> 30 == 3:
        return _made(word, "vsetivli", "i")
    return _made(word, "vsetvl", "x") if word >> 25 == 0x40 else None


def _arithmetic(word: int, funct3: int) -> VectorInstruction | None:
    funct6, vs2, vs1, masked = word >> 26, word >> 20 & 31, word >> 15 & 31, not word >> 25 & 1
    form = FORMS[funct3]
    if funct3 in (2, 6):
        if form == "v" and funct6 in UNARY:
            name, form = UNARY[funct6].get(vs1, ""), ""
        elif form == "x" and funct6 == 0x10:
            return None if vs2 or masked else _made(word, "vmv.s.x", "x")
        else:
            name, forms = MULTIPLY.get(funct6, ("", ""))
            name = name if form in forms else ""
        if not name or (masked and name in NEVER_MASKED) or (name == "vid" and vs2):
            return None
        return _made(word, name, form)
    if (funct3, funct6) == (0, 0x0E):
        return _made(word, "vrgatherei16", "v")
    if (funct3, funct6) == (3, 0x27):
        return None if masked or vs1 + 1 not in WHOLE else _made(word, "vmvr", "", fields=vs1 + 1)
    name, forms = INTEGER.get(funct6, ("", ""))
    if form not in forms or (name in ALWAYS_MASKED and not masked):
        return None
    if name == "vmerge" and not masked:
        return None if vs2 else _made(word, "vmv.v", form)
    return _made(word, name, form)


def _memory(word: int) -> VectorInstruction | None:
    """Names are a verb, load or store, and a kind: unit, mask, whole, first (fault-only-first), strided, indexed."""
    verb = "load" if word & 0x7F == LOAD else "store"
    eew, fields, plain = WIDTHS.get(word >> 12 & 7, 0), (word >> 29) + 1, word >> 25 & 1
    if not eew or word >> 28 & 1:  # floating point, or mew
        return None
    kind = STRIDES[word >> 26 & 3]
    if kind == "unit":
        match word >> 20 & 31:
            case 0:
                pass
            case 8 if plain and fields in WHOLE and (verb == "load" or eew == 8):
                kind = "whole"
            case 11 if plain and fields == 1 and eew == 8:
                kind = "mask"
            case 16 if verb == "load":
                kind = "first"
            case _:
                return None
    return _made(word, f"{verb} {kind}", "x", eew, fields)
