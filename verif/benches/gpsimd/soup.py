"""Random programs for a scalar core: instructions of every kind, whatever they do, and a handler that goes on.

Nothing keeps them in order: a register holds any value, so loads, stores and jumps often fault. The handler steps over
what trapped; after an interrupt or a fetch that failed it goes where the device says.
"""

import numpy as np

__all__ = ["CODE_BYTES", "HANDLER", "SOUP_BYTES", "patches", "soup"]

SOUP_BYTES = 0x4000
CODE_BYTES = 0x8000
"""What is executed lies below, but for the handler."""
HANDLER = 0xF000  # places in RAM
_VECTORS = 0xF100
_DATA = CODE_BYTES
_AGAIN = 0x40
_CSRS = (0x300, 0x301, 0x304, 0x305, 0x340, 0x341, 0x342, 0x343, 0x344, 0x310, 0x320, 0xB00, 0xB02, 0xB80, 0xB82)
_READ_ONLY = (0xC00, 0xC01, 0xC02, 0xC80, 0xC81, 0xC82, 0xF11, 0xF12, 0xF13, 0xF14, 0xF15)
_CORNERS = (0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF)
_OFTEN = (0.10, 0.08, 0.04, 0.10, 0.05, 0.07, 0.06, 0.05, 0.05, 0.06, 0.025, 0.02, 0.265, 0.005, 0.005, 0.02)
"""Of each kind below."""
_X5 = 5


def _r(opcode: int, funct3: int, rd: int, rs1: int, rs2: int, funct7: int) -> int:
    return opcode | rd << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | funct7 << 25


def _i(opcode: int, funct3: int, rd: int, rs1: int, immediate: int) -> int:
    return opcode | rd << 7 | funct3 << 12 | rs1 << 15 | (immediate & 0xFFF) << 20


def _s(funct3: int, rs1: int, rs2: int, immediate: int) -> int:
    return _r(0x23, funct3, immediate & 31, rs1, rs2, immediate >> 5 & 127)


def _b(funct3: int, rs1: int, rs2: int, offset: int) -> int:
    low = (offset >> 11 & 1) | (offset >> 1 & 15) << 1
    high = (offset >> 5 & 63) | (offset >> 12 & 1) << 6
    return _r(0x63, funct3, low, rs1, rs2, high)


def _j(rd: int, offset: int) -> int:
    o = offset
    return 0x6F | rd << 7 | (o >> 12 & 255) << 12 | (o >> 11 & 1) << 20 | (o >> 1 & 1023) << 21 | (o >> 20 & 1) << 31


def _csr(funct3: int, rd: int, source: int, number: int) -> int:
    return _i(0x73, funct3, rd, source, number)


def _handler() -> list[int]:
    """Steps over an instruction that trapped; else to the address in the device's first word."""
    swap = _csr(1, _X5, _X5, 0x340)
    elsewhere = [
        _r(0x37, 0, _X5, 0, 0, 0) | 0x40000 << 12,
        _i(0x03, 2, _X5, _X5, 0),
        _csr(1, 0, _X5, 0x341),
        swap,
        0x30200073,
    ]
    step = [
        _csr(2, _X5, 0, 0x341),
        _i(0x03, 1, _X5, _X5, 0),
        _i(0x13, 7, _X5, _X5, 3),
        _i(0x13, 3, _X5, _X5, 3),
        _b(1, _X5, 0, 5 * 4),
        _csr(2, _X5, 0, 0x341),
        _i(0x13, 0, _X5, _X5, 4),
        _csr(1, 0, _X5, 0x341),
        _j(0, 4 * 4),
        _csr(2, _X5, 0, 0x341),
        _i(0x13, 0, _X5, _X5, 2),
        _csr(1, 0, _X5, 0x341),
        swap,
        0x30200073,
    ]
    begin = [
        swap,
        _csr(2, _X5, 0, 0x342),
        _b(4, _X5, 0, 4 * (3 + len(step))),
        _i(0x13, 0, _X5, _X5, -1),
        _b(0, _X5, 0, 4 * (1 + len(step))),
    ]
    return [*begin, *step, *elsewhere]


def _constant(rd: int, value: int) -> list[int]:
    low = (value & 0xFFF) - (value << 1 & 0x1000)
    return [0x37 | rd << 7 | (value - low & 0xFFFFF000), _i(0x13, 0, rd, rd, low)]


def _one(rng: np.random.Generator, base: int) -> list[int]:
    """A few instructions, as words; those of 16 bits are negative."""
    rd, rs1, rs2 = (int(v) for v in rng.integers(0, 32, 3))
    if rng.random() < 0.3:
        rs1 = int(rng.integers(8, 16))
    immediate = int(rng.choice([0, 1, -1, 2047, -2048, int(rng.integers(-2048, 2048))]))
    back = rng.random() < 0.06  # seldom, since the two most often make a loop that nothing ends
    near = 2 * int(rng.integers(-24, -1) if back else rng.integers(2, 40))
    kind = rng.choice(16, p=_OFTEN)
    match int(kind):
        case 0:
            funct3 = int(rng.integers(8))
            other = funct3 in (0, 5) or rng.random() < 0.05  # sub and sra; else illegal
            return [_r(0x33, funct3, rd, rs1, rs2, 0x20 * int(other and rng.random() < 0.4))]
        case 1:
            return [_i(0x13, int(rng.choice([0, 2, 3, 4, 6, 7])), rd, rs1, immediate)]
        case 2:
            left = rng.random() < 0.3
            return [_r(0x13, 1 if left else 5, rd, rs1, rs2, 0 if left else 0x20 * int(rng.integers(2)))]
        case 3:
            corners = [*_constant(rs1, int(rng.choice(_CORNERS))), *_constant(rs2, int(rng.choice(_CORNERS)))]
            return [*corners * int(rng.random() < 0.4), _r(0x33, int(rng.integers(8)), rd, rs1, rs2, 1)]
        case 4:  # corners to registers
            return _constant(rd, int(rng.choice([*_CORNERS, int(rng.integers(1 << 32))])))
        case 5:
            place = base + _DATA + 4 * int(rng.integers(64)) + int(rng.choice([0, 0, 0, 1, 2, 3]))
            return [
                *_constant(rs1, place),
                _i(0x03, int(rng.choice([0, 1, 2, 4, 5])), rd, rs1, 4 * int(rng.integers(-8, 8))),
            ]
        case 6:
            place = base + _DATA + 4 * int(rng.integers(64)) + int(rng.choice([0, 0, 0, 1, 2, 3]))
            return [*_constant(rs1, place), _s(int(rng.integers(3)), rs1, rs2, 4 * int(rng.integers(-8, 8)))]
        case 7:
            return [_b(int(rng.choice([0, 1, 4, 5, 6, 7])), rs1, rs2, near), _i(0x13, 0, rd, rs1, immediate)]
        case 8:
            return [_j(rd, near)]
        case 9:
            if rng.random() < 0.4:
                reads = rng.random() < 0.9
                return [
                    _csr(2 if reads else int(rng.integers(1, 4)), rd, 0 if reads else rs1, int(rng.choice(_READ_ONLY)))
                ]
            number = int(rng.choice(_CSRS))
            if number == 0x305:
                return [_csr(2, rd, 0, number)]
            return [_csr(int(rng.choice([1, 2, 3, 5, 6, 7])), rd, rs1 * int(rng.random() < 0.5), number)]
        case 10:
            return [int(rng.choice([0x00000073, 0x00000073, 0x00100073, 0x00100073, 0x30200073, 0x10500073]))]
        case 11:
            return [int(rng.choice([0x0000000F, 0x0FF0000F, 0x0000100F]))]
        case 12:
            half = int(rng.integers(1 << 16))
            if half & 3 == 1 and half >> 13 in (1, 5, 6, 7) and not back:
                half &= ~(1 << 12)  # the sign of its offset
            half = half if half & 3 != 3 else half ^ int(rng.integers(1, 4))
            if half & 3 != 1 and rng.random() < 0.9:
                half &= ~(1 << 13)  # floating point else
            quadrant, funct3 = half & 3, half >> 13
            pointer: list[int] = []
            if quadrant != 1 and funct3 in (2, 6):  # loads and stores, by x8 to x15 or x2
                pointer = _constant(
                    8 + (half >> 7 & 7) if quadrant == 0 else 2, base + _DATA + 4 * int(rng.integers(64))
                )
            return [*pointer, -half - 1]
        case 13:  # anything
            return [int(rng.integers(1 << 32)) | 3]
        case 14:  # to this code at another address, where there is none, or other code
            other = rs2 if rs2 != rs1 else rs1 ^ 1
            bit = 1 << int(rng.integers(12, 32))
            return [0x17 | rs1 << 7, 0x37 | other << 7 | bit, _r(0x33, 4, rs1, rs1, other, 0), _i(0x67, 0, rd, rs1, 16)]
        case _:
            return [
                0x17 | rs1 << 7,
                _i(0x67, 0, rd, rs1, 8 + (near if rng.random() < 0.9 else int(rng.integers(-2048, 2048)))),
            ]


def soup(rng: np.random.Generator, base: int, ram_bytes: int) -> bytearray:
    """What a RAM at `base` holds: a program that begins there and does not end."""
    ram = bytearray(ram_bytes)
    vectored = int(rng.random() < 0.5)
    start = [
        *_constant(1, base + (_VECTORS if vectored else HANDLER) + vectored),
        _csr(1, 0, 1, 0x305),
        *_constant(2, 0x888),
        _csr(1, 0, 2, 0x304),
        _csr(6, 0, 8, 0x300),
    ]
    for funct3 in range(8):  # what each program has at least
        start += [*_constant(6, int(rng.choice(_CORNERS))), *_constant(7, int(rng.choice([0, *_CORNERS])))]
        start.append(_r(0x33, funct3, int(rng.integers(32)), 6, 7, 1))
    start += [0x00000073, 0x00100073]
    code = b"".join(word.to_bytes(4, "little") for word in start)
    for funct3 in (0, 2, 3, 4):
        for _ in range(2):
            code += (funct3 << 13 | int(rng.integers(1 << 11)) << 2 | 1).to_bytes(2, "little")
    while len(code) < SOUP_BYTES:
        for word in _one(rng, base):
            code += (-word - 1).to_bytes(2, "little") if word < 0 else word.to_bytes(4, "little")
    ram[: len(code)] = code
    for place in (*range(SOUP_BYTES, _DATA - 64, 4), *range(_DATA + 1024, HANDLER, 4)):  # the end: begin again
        ram[place : place + 4] = _j(0, _AGAIN - place).to_bytes(4, "little")
    handler = _handler()
    for n, word in enumerate(handler):
        ram[HANDLER + 4 * n : HANDLER + 4 * n + 4] = word.to_bytes(4, "little")
    for n in range(16):  # each vector jumps to the handler
        place = _VECTORS + 4 * n
        ram[place : place + 4] = _j(0, HANDLER - place).to_bytes(4, "little")
    ram[_DATA : _DATA + 512] = rng.bytes(512)
    return ram


def patches(rng: np.random.Generator, base: int, ram_bytes: int) -> bytearray:
    """A RAM with a program that writes an instruction, says fence.i and executes it, many times and then for ever."""
    ram = bytearray(ram_bytes)
    code: list[int] = []
    for _ in range(60):
        words = _i(0x13, 0, 6, 6, int(rng.integers(-2048, 2048))), _r(0x33, 4, 6, 6, 7, 0)
        to = 4 * (len(code) + 6 + int(rng.integers(6)))
        place = base + to
        block = [*_constant(5, place), *_constant(7, int(rng.choice(words))), _s(2, 5, 7, 0), 0x0000100F]
        block += [_i(0x13, 0, 6, 6, 1)] * 6
        code += block
    code.append(_j(0, -4 * len(code)))
    for n, word in enumerate(code):
        ram[4 * n : 4 * n + 4] = word.to_bytes(4, "little")
    return ram
