"""Reads an image: what is in it, and whether it is for a GPSIMD core at all. No compiler is needed.

What depends on the core that is to run it (VLEN, extensions, local memory) is for firmware/gpsimd/core.py to judge.
"""

from pathlib import Path
from typing import IO, Any

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

from firmware.gpsimd.arch import Arch, parse_arch
from firmware.gpsimd.errors import FirmwareError
from firmware.gpsimd.image import Function, Image, Section
from rtl.contract.gpsimd import LOCAL_BYTES_MAX, Region

__all__ = ["read_image"]

_ALLOCATED, _EXECUTABLE = 0x2, 0x4
_FLOAT_ABI = {0: "soft", 2: "single", 4: "double", 6: "quad"}
_FLOAT_ABI_MASK, _REDUCED, _TSO = 0x6, 0x8, 0x10
_OP_V, _LOAD_FP, _STORE_FP, _VECTOR_WIDTHS = 0x57, 0x07, 0x27, (0, 5, 6, 7)
_BROKEN = (ELFError, ConstructError, ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError)
"""What pyelftools raises on files that are cut or damaged."""


def read_image(path: Path) -> Image:
    """The image in a file. FirmwareError: the file, the value and the rule, in one sentence."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise FirmwareError(f"{path} cannot be read: {error.strerror}") from None
    with stream:
        try:
            return _image(path, stream)
        except _BROKEN as error:
            raise FirmwareError(f"{path} is no whole ELF file: {str(error) or type(error).__name__}") from None


def _image(path: Path, stream: IO[bytes]) -> Image:
    identity = stream.read(20)
    if identity[:4] != b"\x7fELF":
        raise FirmwareError(
            f"{path} is no ELF file: it begins with {identity[:4].hex(' ') or 'nothing'}, not 7f 45 4c 46"
        )
    if identity[4:5] != b"\x01":
        kind = {b"\x02": "ELF64", b"": "none"}.get(identity[4:5], identity[4:5].hex())
        raise FirmwareError(f"{path} is of class {kind}, and GPSIMD cores have 32-bit registers: ELF32")
    if identity[5:6] == b"\x02":
        raise FirmwareError(f"{path} is big endian, and GPSIMD cores are little endian")
    elf = ELFFile(stream)
    _need_kind(path, elf)
    sections = tuple(_sections(elf))
    entry: int = elf.header["e_entry"]
    image = Image(path, entry, sections, _arch(path, elf), _symbols(elf), _functions(elf, sections))
    _need_place(image)
    return image


def _need_kind(path: Path, elf: ELFFile) -> None:
    """FirmwareError unless this is a program for a RISC-V core without floating point."""
    header: Any = elf.header
    if (machine := header["e_machine"]) != "EM_RISCV":
        raise FirmwareError(f"{path} is for machine {machine}, and GPSIMD cores are EM_RISCV")
    if (kind := header["e_type"]) != "ET_EXEC":
        raise FirmwareError(f"{path} is of type {kind}, and a program is ET_EXEC: link it with plexus firmware build")
    flags: int = header["e_flags"]
    if abi := flags & _FLOAT_ABI_MASK:
        raise FirmwareError(
            f"{path} passes floating point in registers ({_FLOAT_ABI[abi]} float ABI), and GPSIMD cores have none: "
            "build it with -mabi=ilp32"
        )
    if flags & _REDUCED:
        raise FirmwareError(
            f"{path} uses the ABI of rv32e, and GPSIMD cores have 32 registers: build it with -mabi=ilp32"
        )
    if flags & _TSO:
        raise FirmwareError(f"{path} relies on total store order (Ztso), which GPSIMD cores do not have")


def _sections(elf: ELFFile) -> list[Section]:
    found = []
    for section in elf.iter_sections():
        flags, size = section["sh_flags"], section["sh_size"]
        if flags & _ALLOCATED and size:
            data = b"" if section["sh_type"] == "SHT_NOBITS" else section.data()
            if len(data) not in (0, size):
                raise ELFError(f"section {section.name} has {len(data):,} of its {size:,} bytes")
            found.append(Section(section.name, section["sh_addr"], size, bool(flags & _EXECUTABLE), data))
    return sorted(found, key=lambda one: one.address)


def _arch(path: Path, elf: ELFFile) -> Arch | None:
    """What Tag_RISCV_arch says."""
    section: Any = elf.get_section_by_name(".riscv.attributes")
    if section is None:
        return None
    for vendor in section.iter_subsections():
        for part in vendor.iter_subsubsections():
            for attribute in part.iter_attributes("TAG_ARCH"):
                try:
                    return parse_arch(attribute.value)
                except ValueError as error:
                    raise FirmwareError(f"{path}: its Tag_RISCV_arch cannot be read, for {error}") from None
    return None


def _symbols(elf: ELFFile) -> dict[str, int]:
    table: Any = elf.get_section_by_name(".symtab")
    if table is None:
        return {}
    symbols = ((str(symbol.name), int(symbol["st_value"]), symbol["st_shndx"]) for symbol in table.iter_symbols())
    return {name: value for name, value, where in symbols if name and where != "SHN_UNDEF" and name[0] not in ".$"}


def _vector_instructions(code: bytes) -> int:
    """Arithmetic, configuration, loads and stores of vectors among 16- and 32-bit instructions."""
    count = at = 0
    while at + 4 <= len(code):
        word = int.from_bytes(code[at : at + 4], "little")
        if word & 3 == 3:
            opcode, width = word & 0x7F, word >> 12 & 7
            count += opcode == _OP_V or (opcode in (_LOAD_FP, _STORE_FP) and width in _VECTOR_WIDTHS)
        at += 4 if word & 3 == 3 else 2
    return count


def _functions(elf: ELFFile, sections: tuple[Section, ...]) -> dict[str, Function]:
    table: Any = elf.get_section_by_name(".symtab")
    found = {}
    for symbol in table.iter_symbols() if table is not None else ():
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"]:
            first, size = symbol["st_value"], symbol["st_size"]
            inside = [s for s in sections if s.data and s.address <= first and first + size <= s.end]
            code = inside[0].data[first - inside[0].address :][:size] if inside else b""
            found[str(symbol.name)] = Function(first, size, _vector_instructions(code))
    return found


def _need_place(image: Image) -> None:
    """FirmwareError unless everything begins in local memory, and an entry is there."""
    if not image.loaded:
        raise FirmwareError(f"{image.path} has no section to load")
    for section in image.sections:
        if not any(first <= section.address < first + LOCAL_BYTES_MAX for first in (Region.LOCAL, Region.LOCAL_TOO)):
            raise FirmwareError(
                f"{image.path}: section {section.name} lies at {section.address:#010x}, outside local memory, which "
                f"begins at {int(Region.LOCAL):#010x} and, the same bytes, at {int(Region.LOCAL_TOO):#010x}"
            )
        if section.address - image.base >= LOCAL_BYTES_MAX:
            raise FirmwareError(
                f"{image.path}: section {section.name} lies at {section.address:#010x} and others near "
                f"{image.base:#010x}; all sections lie in one of the two places of local memory"
            )
    if image.entry == 0:
        raise FirmwareError(f"{image.path} has no entry (e_entry is 0): the start code defines _start")
    if not any(s.executable and s.address <= image.entry < s.end for s in image.loaded) or image.entry % 2:
        raise FirmwareError(f"{image.path}: its entry {image.entry:#010x} is no instruction of a section with code")
