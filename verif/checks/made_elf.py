"""ELF files made byte by byte, for tests of what reads and runs images where there is no compiler."""

import struct
from collections.abc import Iterable

from rtl.contract.gpsimd import Region

__all__ = [
    "ALLOC",
    "ARCH",
    "CODE",
    "LOCAL",
    "LW_FLOAT_WIDTH",
    "Made",
    "NOBITS",
    "PROGBITS",
    "RET",
    "VADD",
    "attributes",
    "code",
    "elf",
    "stack",
]

RISCV, EXECUTABLE = 243, 2
PROGBITS, SYMTAB, STRTAB, NOBITS, ATTRIBUTES = 1, 2, 3, 8, 0x7000_0003
ALLOC, CODE = 2, 6
LOCAL = int(Region.LOCAL)
RET = bytes.fromhex("67800000")
VADD = bytes.fromhex("d7002002")
LW_FLOAT_WIDTH = bytes.fromhex("07200000")  # flw: width 2 is no vector load
ARCH = "rv32i2p1_m2p0_c2p0_zicsr2p0_zifencei2p0_zmmul1p0_zca1p0_zve32x1p0_zvl128b1p0_zvl32b1p0_zvl64b1p0"

Made = tuple[str, int, int, int, bytes, int]
"""Name, type, flags, address, contents, size."""


def attributes(arch: str) -> Made:
    """Tag_RISCV_arch."""
    tags = b"\x05" + arch.encode() + b"\0"
    part = b"\x01" + struct.pack("<I", len(tags) + 5) + tags
    body = struct.pack("<I", len(part) + 10) + b"riscv\0" + part
    return (".riscv.attributes", ATTRIBUTES, 0, 0, b"A" + body, len(body) + 1)


def code(address: int = LOCAL + 4096, data: bytes = RET) -> Made:
    """A section with instructions."""
    return (".text", PROGBITS, CODE, address, data, len(data))


def stack(size: int = 4096) -> Made:
    """What an image sets aside at the bottom."""
    return (".stack", NOBITS, ALLOC, LOCAL, b"", size)


def elf(
    sections: Iterable[Made] = (),
    *,
    ident: bytes = b"\x7fELF\x01\x01\x01",
    kind: int = EXECUTABLE,
    machine: int = RISCV,
    entry: int = LOCAL + 4096,
    flags: int = 1,
    symbols: Iterable[tuple[str, int, int]] = (),
) -> bytes:
    """An ELF file of these sections; `symbols` are functions with address and size."""
    made = list(sections) or [stack(), code(), attributes(ARCH)]
    if symbols:
        names, table = b"\0", bytes(16)
        for name, address, size in symbols:
            table += struct.pack("<IIIBBH", len(names), address, size, 0x12, 0, 2)
            names += name.encode() + b"\0"
        made += [(".symtab", SYMTAB, 0, 0, table, len(table)), (".strtab", STRTAB, 0, 0, names, len(names))]
    made.append((".shstrtab", STRTAB, 0, 0, b"", 0))
    texts = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in made)
    made[-1] = (".shstrtab", STRTAB, 0, 0, texts, len(texts))
    body, headers, at, label = b"", bytes(40), 52, 1
    for number, (name, type_, flag, address, data, size) in enumerate(made, 1):
        link, entsize = (number + 1, 16) if type_ == SYMTAB else (0, 0)
        headers += struct.pack("<10I", label, type_, flag, address, at, size, link, 0, 4, entsize)
        body, at, label = body + data, at + len(data), label + len(name) + 1
    count = len(made) + 1
    header = ident.ljust(16, b"\0") + struct.pack(
        "<HHIIIIIHHHHHH", kind, machine, 1, entry, 0, at, flags, 52, 32, 0, 40, count, count - 1
    )
    return header + body + headers
