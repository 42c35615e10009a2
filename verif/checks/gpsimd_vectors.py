"""Vector instructions for random programs of GPSIMD cores: those that are legal whatever the registers hold."""

import random
from collections.abc import Callable

from verif.checks import riscv_words as w

__all__ = ["VECTOR_BYTES", "behind", "off", "vectors"]

VECTOR_BYTES = 128
"""Bytes of memory that a vector of `vectors` has at most; with a stride it takes twice as many."""

_T0, _T1 = 5, 6
_MSTATUS, _VS = 0x300, 0x600
_WIDTHS = (0, 5, 6)  # of loads and stores, of 1, 2 and 4 bytes
_OPERATIONS = (
    (0x00, 0), (0x02, 0), (0x05, 0), (0x0B, 0), (0x21, 0), (0x25, 0), (0x2B, 0), (0x27, 0), (0x09, 2), (0x21, 2),
    (0x25, 2), (0x27, 2), (0x2D, 2), (0x29, 2),
)  # fmt: skip
"""funct6 and funct3 of vadd, vsub, vmin, vxor, vsadd, vsll, vssra, vsmul, vaadd, vdiv, vmul, vmulh, vmacc, vmadd."""


def _li(rd: int, value: int) -> bytes:
    return w.load_constant(rd, value & 0xFFFFFFFF)


def _set(size: int, lmul: int, count: int) -> bytes:
    """Vectors on; vtype, and a vl of at most `count`."""
    on = _li(_T0, _VS) + w.immediate(0x73, 2, 0, _T0, _MSTATUS)
    return on + _li(_T0, count) + w.word((size << 3 | lmul) << 20 | _T0 << 15 | 7 << 12 | 0x57)


def vectors(rng: random.Random, window: Callable[[int], int], value: Callable[[], int], operations: int = 4) -> bytes:
    """Loads, computes in fewer than `operations` steps and stores vectors, some of it masked. `window`: an address from
    which so many bytes are there; `value`: a register that may be written. Uses registers 5 and 6."""
    size, lmul = rng.choice((0, 1, 2, 2)), rng.randrange(3)
    count, width = rng.randrange(1, VECTOR_BYTES >> size), _WIDTHS[size]
    code = _set(size, lmul, count) + _li(_T0, rng.getrandbits(32)) + w.word(0x5E00_4057 | _T0 << 15)  # vmv.v.x v0

    def all_or_masked() -> int:
        return int(rng.random() < 0.6) << 25

    for register in (8, 16):
        code += _li(_T0, window(VECTOR_BYTES))
        code += w.word(all_or_masked() | _T0 << 15 | width << 12 | register << 7 | 0x07)
    for _ in range(rng.randrange(operations)):
        funct6, funct3 = rng.choice(_OPERATIONS)
        vd, vs1, vs2 = (rng.choice((8, 16, 24)) for _ in range(3))
        code += w.word(funct6 << 26 | all_or_masked() | vs2 << 20 | vs1 << 15 | funct3 << 12 | vd << 7 | 0x57)
    code += w.word(0x4200_2057 | rng.choice((8, 16, 24)) << 20 | value() << 7)  # vmv.x.s
    for _ in range(2):
        stride = 4 * rng.randrange(1, 3) if count < 32 and size == 2 and rng.random() < 0.5 else 0
        store = 0x27 | all_or_masked() | _T0 << 15 | width << 12 | rng.choice((8, 16)) << 7
        code += _li(_T0, window(2 * VECTOR_BYTES if stride else VECTOR_BYTES)) + _li(_T1, stride)
        code += w.word(store | (2 << 26 | _T1 << 20 if stride else 0))
    return code


def off() -> bytes:
    """An instruction of vectors while mstatus.VS is 0."""
    return _li(_T0, _VS) + w.immediate(0x73, 3, 0, _T0, _MSTATUS) + w.word(2 << 23 | _T0 << 15 | 7 << 12 | 0x57)


def behind(address: int) -> bytes:
    """A load of eight registers from `address` on."""
    return _set(2, 3, 1 << 20) + _li(_T0, address) + w.word(0x0202_E407)
