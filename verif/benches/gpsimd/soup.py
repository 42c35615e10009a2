"""Random programs for a scalar core: instructions of every kind, whatever they do, and a handler that goes on.

Nothing keeps them in order: a register holds any value, so loads, stores and jumps often fault. The handler steps over
what trapped; after an interrupt or a fetch that failed it goes where the device says.
"""

import random

import numpy as np

from verif.checks.riscv_words import branch, immediate, jump, load_constant, register, store, upper
from verif.checks.vector_words import LMULS, random_vector_word, vtypes

__all__ = ["CODE_BYTES", "HANDLER", "SOUP_BYTES", "patches", "soup"]

SOUP_BYTES = 0x4000
CODE_BYTES = 0x8000
"""What is executed lies below, but for the handler."""
HANDLER = 0xF000  # places in RAM
_VECTORS = 0xF100
_DATA = CODE_BYTES
_AGAIN = 0x40
_CSRS = (0x300, 0x301, 0x304, 0x305, 0x340, 0x341, 0x342, 0x343, 0x344, 0x310, 0x320, 0xB00, 0xB02, 0xB80, 0xB82)
_CSRS += (0x008, 0x009, 0x00A, 0x00F)
_READ_ONLY = (0xC00, 0xC01, 0xC02, 0xC80, 0xC81, 0xC82, 0xF11, 0xF12, 0xF13, 0xF14, 0xF15, 0xC20, 0xC21, 0xC22)
_CORNERS = (0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF)
_OFTEN = (0.08, 0.07, 0.04, 0.08, 0.05, 0.06, 0.05, 0.05, 0.05, 0.06, 0.025, 0.02, 0.235, 0.005, 0.005, 0.02, 0.1)
"""Of each kind below."""
_ECALL, _EBREAK, _MRET, _WFI, _FENCE_I = 0x73, 0x00100073, 0x30200073, 0x10500073, 0x100F
_X5 = 5


def _word(bits: int, size: int = 4) -> bytes:
    return bits.to_bytes(size, "little")


def _csr(funct3: int, rd: int, source: int, number: int) -> bytes:
    return immediate(0x73, funct3, rd, source, number)


def _handler() -> bytes:
    """Steps over an instruction that trapped; else to the address in the device's first word."""
    swap = _csr(1, _X5, _X5, 0x340)
    end = swap + _word(_MRET)
    read_epc, write_epc = _csr(2, _X5, 0, 0x341), _csr(1, 0, _X5, 0x341)
    elsewhere = upper(0x37, _X5, 0x40000) + immediate(0x03, 2, _X5, _X5, 0) + write_epc + end
    long = read_epc + immediate(0x13, 0, _X5, _X5, 4) + write_epc
    short = read_epc + immediate(0x13, 0, _X5, _X5, 2) + write_epc
    step = (
        read_epc + immediate(0x03, 1, _X5, _X5, 0) + immediate(0x13, 7, _X5, _X5, 3) + immediate(0x13, 3, _X5, _X5, 3)
    )
    step += branch(1, _X5, 0, 8 + len(long)) + long + jump(0, 4 + len(short)) + short + end
    no_memory = branch(0, _X5, 0, 4 + len(step))
    interrupt = branch(4, _X5, 0, 8 + len(no_memory) + len(step))
    return swap + _csr(2, _X5, 0, 0x342) + interrupt + immediate(0x13, 0, _X5, _X5, -1) + no_memory + step + elsewhere


def _half(rng: np.random.Generator, base: int, back: bool) -> bytes:
    """An instruction of 16 bits; a load or store has a pointer most often."""
    half = int(rng.integers(1 << 16))
    if half & 3 == 3:
        half ^= int(rng.integers(1, 4))
    if half & 3 == 1 and half >> 13 in (1, 5, 6, 7) and not back:
        half &= ~(1 << 12)  # the sign of its offset
    if half & 3 != 1 and rng.random() < 0.9:
        half &= ~(1 << 13)  # floating point else
    if half & 3 == 1 or half >> 13 not in (2, 6):
        return _word(half, 2)
    pointer = 8 + (half >> 7 & 7) if half & 3 == 0 else 2
    return load_constant(pointer, base + _DATA + 4 * int(rng.integers(64))) + _word(half, 2)


def _csr_access(rng: np.random.Generator, rd: int, rs1: int) -> bytes:
    """mtvec is only read, or nothing would end a trap."""
    if rng.random() < 0.4:
        number = int(rng.choice(_READ_ONLY))
        return _csr(2, rd, 0, number) if rng.random() < 0.9 else _csr(int(rng.integers(1, 4)), rd, rs1, number)
    number = int(rng.choice(_CSRS))
    if number == 0x305:
        return _csr(2, rd, 0, number)
    return _csr(int(rng.choice([1, 2, 3, 5, 6, 7])), rd, rs1 * int(rng.random() < 0.5), number)


def _vectors(rng: np.random.Generator, pointer: int) -> bytes:
    """A few instructions of vectors, most often with a vtype for which they are legal."""
    choose = random.Random(int(rng.integers(1 << 31)))
    lmul = choose.choice(LMULS)
    vtype = choose.choice([v for v in vtypes() if (v & 7) == lmul & 7])
    code = load_constant(_X5, 0x600) + _csr(2, 0, _X5, 0x300) + _csr(5, 0, 0, 0x008)  # VS; vstart is 0
    code += load_constant(_X5, choose.choice((1, 3, 9, 30, 1 << 20))) + _word(vtype << 20 | _X5 << 15 | 0x7057)
    for _ in range(choose.randrange(1, 6)):
        word = random_vector_word(choose, lmul)
        if word & 0x5F == 7:
            code += load_constant(word >> 15 & 31, pointer & ~3)
            code += load_constant(word >> 20 & 31, choose.choice((0, 1, 4, 12, -8))) if word >> 26 & 3 == 2 else b""
        code += _word(word)
    return code


def _one(rng: np.random.Generator, base: int) -> bytes:
    """A few instructions."""
    rd, rs1, rs2 = (int(v) for v in rng.integers(0, 32, 3))
    if rng.random() < 0.3:
        rs1 = int(rng.integers(8, 16))
    back = rng.random() < 0.06  # seldom, since the two most often make a loop that nothing ends
    near = 2 * int(rng.integers(-24, -1) if back else rng.integers(2, 40))
    number = int(rng.choice([0, 1, -1, 2047, -2048, int(rng.integers(-2048, 2048))]))
    pointer = base + _DATA + 4 * int(rng.integers(64)) + int(rng.choice([0, 0, 0, 1, 2, 3]))
    offset = 4 * int(rng.integers(-8, 8))
    funct3 = int(rng.integers(8))
    match int(rng.choice(len(_OFTEN), p=_OFTEN)):
        case 0:
            other = funct3 in (0, 5) or rng.random() < 0.05  # sub and sra; else illegal
            return register(0x20 * int(other and rng.random() < 0.4), funct3, rd, rs1, rs2)
        case 1:
            return immediate(0x13, int(rng.choice([0, 2, 3, 4, 6, 7])), rd, rs1, number)
        case 2:  # shifts
            left = rng.random() < 0.3
            return immediate(0x13, 1 if left else 5, rd, rs1, rs2 + (0 if left else 0x400 * int(rng.integers(2))))
        case 3:
            corners = load_constant(rs1, int(rng.choice(_CORNERS))) + load_constant(rs2, int(rng.choice(_CORNERS)))
            return corners * int(rng.random() < 0.4) + register(1, funct3, rd, rs1, rs2)
        case 4:
            return load_constant(rd, int(rng.choice([*_CORNERS, int(rng.integers(1 << 32))])))
        case 5:
            return load_constant(rs1, pointer) + immediate(0x03, int(rng.choice([0, 1, 2, 4, 5])), rd, rs1, offset)
        case 6:
            return load_constant(rs1, pointer) + store(int(rng.integers(3)), rs2, rs1, offset)
        case 7:
            return branch(int(rng.choice([0, 1, 4, 5, 6, 7])), rs1, rs2, near) + immediate(0x13, 0, rd, rs1, number)
        case 8:
            return jump(rd, near)
        case 9:
            return _csr_access(rng, rd, rs1)
        case 10:
            return _word(int(rng.choice([_ECALL, _ECALL, _EBREAK, _EBREAK, _MRET, _WFI])))
        case 11:
            return _word(int(rng.choice([0x0F, 0x0FF0000F, _FENCE_I])))
        case 12:
            return _half(rng, base, bool(back))
        case 13:  # anything
            return _word(int(rng.integers(1 << 32)) | 3)
        case 14:  # to this code at another address, where there is none, or other code
            other = rs2 if rs2 != rs1 else rs1 ^ 1
            flipped = upper(0x17, rs1, 0) + upper(0x37, other, 1 << int(rng.integers(20)))
            return flipped + register(0, 4, rs1, rs1, other) + immediate(0x67, 0, rd, rs1, 16)
        case 15:
            far = near if rng.random() < 0.9 else int(rng.integers(-2000, 2000))
            return upper(0x17, rs1, 0) + immediate(0x67, 0, rd, rs1, 8 + far)
        case _:
            return _vectors(rng, pointer)


def soup(rng: np.random.Generator, base: int, ram_bytes: int) -> bytearray:
    """What a RAM at `base` holds: a program that begins there and does not end."""
    ram = bytearray(ram_bytes)
    vectored = int(rng.random() < 0.5)
    code = load_constant(1, base + (_VECTORS if vectored else HANDLER) + vectored) + _csr(1, 0, 1, 0x305)
    code += load_constant(2, 0x888) + _csr(1, 0, 2, 0x304) + _csr(6, 0, 8, 0x300)
    for funct3 in range(8):  # what each program has at least
        code += load_constant(6, int(rng.choice(_CORNERS))) + load_constant(7, int(rng.choice([0, *_CORNERS])))
        code += register(1, funct3, int(rng.integers(32)), 6, 7)
    code += _word(_ECALL) + _word(_EBREAK)
    for funct3 in (0, 2, 3, 4):
        for _ in range(2):
            code += _word(funct3 << 13 | int(rng.integers(1 << 11)) << 2 | 1, 2)
    while len(code) < SOUP_BYTES:
        code += _one(rng, base)
    ram[: len(code)] = code
    for place in (*range(SOUP_BYTES, _DATA - 64, 4), *range(_DATA + 1024, HANDLER, 4)):  # the end: begin again
        ram[place : place + 4] = jump(0, _AGAIN - place)
    handler = _handler()
    ram[HANDLER : HANDLER + len(handler)] = handler
    for place in range(_VECTORS, _VECTORS + 64, 4):  # each vector jumps to the handler
        ram[place : place + 4] = jump(0, HANDLER - place)
    ram[_DATA : _DATA + 512] = rng.bytes(512)
    return ram


def patches(rng: np.random.Generator, base: int, ram_bytes: int) -> bytearray:
    """A RAM with a program that writes an instruction, says fence.i and executes it, many times and then for ever."""
    code = b""
    for _ in range(60):
        new = immediate(0x13, 0, 6, 6, int(rng.integers(-2048, 2048))), register(0, 4, 6, 6, 7)
        value = int.from_bytes(new[int(rng.integers(2))], "little")
        place = base + len(code) + 24 + 4 * int(rng.integers(6))
        code += load_constant(5, place) + load_constant(7, value) + store(2, 7, 5, 0) + _word(_FENCE_I)
        code += immediate(0x13, 0, 6, 6, 1) * 6
    code += jump(0, -len(code))
    return bytearray(code.ljust(ram_bytes, b"\0"))
