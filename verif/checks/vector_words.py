"""Random vector instructions, legal and not, of all but floating point; for a given SEW and LMUL most are legal.

Encodings are written here once more, from the listing in RVV 1.0: a table shared with the golden model would not miss
what is missing there.
"""

import random

__all__ = ["LMULS", "SEWS", "UNARY", "WHOLE_MOVE", "random_vector_word", "vtypes"]

SEWS = (8, 16, 32)
LMULS = (-2, -1, 0, 1, 2, 3)
"""Log2. An eighth exists for elements of 64 bits alone."""

LOAD, STORE, ARITHMETIC = 0x07, 0x27, 0x57
IVV, MVV, IVI, IVX, MVX, SET = 0, 2, 3, 4, 6, 7
UNARY = {0x10: (0, 0, 16, 16, 17, 17), 0x12: (4, 5, 6, 7), 0x14: (1, 2, 3, 16, 17)}
WHOLE_MOVE = 0x27
X4 = 4  # never used: a program that executes these has its data there


def vtypes() -> list[int]:
    """Values of vtype that exist, undisturbed."""
    pairs = [(sew, lmul) for lmul in LMULS for sew in SEWS if sew <= 32 >> max(-lmul, 0)]
    return [(lmul & 7) | (sew // 8).bit_length() - 1 << 3 for sew, lmul in pairs]


def _registers(rng: random.Random, lmul: int) -> tuple[int, int, int]:
    """vd, vs1, vs2, mostly aligned, often the same or in one group."""
    wide = 1 << max(0, lmul + rng.choice((0, 0, 1)))
    mask = 31 if rng.random() < 0.1 else -wide & 31
    vd, vs1, vs2 = (rng.getrandbits(5) & mask for _ in range(3))
    if rng.random() < 0.25:
        near = rng.choice((0, 0, 1, wide // 2, wide - 1, wide))
        together = (vd + near, vs2, vd), (vs1, vd + near, vd), (vs1, vs1 + near, vd), (vs1, vs2, vs2 + near)
        vs1, vs2, vd = rng.choice(together)
    if rng.random() < 0.1:
        vd = rng.choice((0, vd))
    return vd & 31, vs1 & 31, vs2 & 31


def _x(register: int) -> int:
    return 5 if register == X4 else register


def _arithmetic(rng: random.Random, lmul: int) -> int:
    funct3, funct6, vm = rng.choice((IVV, MVV, IVI, IVX, MVX)), rng.getrandbits(6), rng.getrandbits(1)
    vd, vs1, vs2 = _registers(rng, lmul)
    if funct3 == MVV and funct6 not in UNARY and rng.random() < 0.07:
        funct6 = rng.choice(tuple(UNARY))
    if funct3 == MVV and funct6 in UNARY:
        vs1 = rng.choice(UNARY[funct6]) if rng.random() < 0.9 else rng.getrandbits(5)
        if funct6 == 0x10:
            vd, vm = _x(vd), vm | (vs1 == 0 and rng.random() < 0.8)
        if (funct6, vs1) == (0x14, 17) and rng.random() < 0.8:
            vs2 = 0
    if funct3 == MVX and funct6 == 0x10 and rng.random() < 0.8:
        vs2, vm = 0, 1
    if funct3 == IVI and funct6 == WHOLE_MOVE and rng.random() < 0.7:
        vs1, vm = rng.choice((0, 1, 3, 7)), 1
    if funct6 == 0x17 and funct3 != MVV and rng.random() < 0.4:
        vs2, vm = 0, 1
    if funct3 in (IVX, MVX):
        vs1 = _x(rng.getrandbits(5))
    return funct6 << 26 | vm << 25 | vs2 << 20 | vs1 << 15 | funct3 << 12 | vd << 7 | ARITHMETIC


def _memory(rng: random.Random, lmul: int) -> int:
    """Addresses are in x1 to x31, strides in another register than the address."""
    opcode, mop, vm = rng.choice((LOAD, STORE)), rng.getrandbits(2), rng.getrandbits(1)
    width = rng.choice((0, 5, 6)) if rng.random() < 0.97 else 7
    nf = 0 if rng.random() < 0.5 else rng.getrandbits(3)
    vd, _, vs2 = _registers(rng, lmul)
    rs1 = _x(rng.randrange(1, 32))
    if mop == 0:
        vs2 = rng.choice((0, 0, 0, 8, 11, 16)) if rng.random() < 0.95 else rng.getrandbits(5)
        if vs2 == 8 and rng.random() < 0.8:
            nf, vm = rng.choice((0, 1, 3, 7)), 1
            width = width if opcode == LOAD else 0
        if vs2 == 11 and rng.random() < 0.8:
            nf, vm, width = 0, 1, 0
    if mop == 2:
        vs2 = _x(vs2)
        vs2 = vs2 if vs2 != rs1 else 0
    mew = rng.random() < 0.02
    return nf << 29 | mew << 28 | mop << 26 | vm << 25 | vs2 << 20 | rs1 << 15 | width << 12 | vd << 7 | opcode


def _configure(rng: random.Random) -> int:
    rd, rs1, rs2 = _x(rng.getrandbits(5)), _x(rng.getrandbits(5)), _x(rng.getrandbits(5))
    if rng.random() < 0.3:
        rd, rs1 = rng.choice(((0, 0), (rd, 0), (0, rs1)))
    kind = rng.randrange(4)
    high = (0, 0, 3, 2)[kind] << 30
    middle = rs2 if kind == 3 else rng.choice(vtypes()) | rng.getrandbits(2) << 6
    if kind < 3 and rng.random() < 0.2:
        middle = rng.getrandbits(10 if kind == 2 else 11)
    if kind == 3 and rng.random() < 0.1:
        middle |= rng.getrandbits(5) << 5
    return high | middle << 20 | rs1 << 15 | SET << 12 | rd << 7 | ARITHMETIC


def random_vector_word(rng: random.Random, lmul: int) -> int:
    """`lmul`: log2 of LMUL, which registers are aligned to. A twentieth sets vtype."""
    kind = rng.random()
    if kind < 0.05:
        return _configure(rng)
    return _memory(rng, lmul) if kind < 0.35 else _arithmetic(rng, lmul)
