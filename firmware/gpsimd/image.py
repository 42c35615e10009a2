"""A program for GPSIMD cores, as firmware/gpsimd/elf.py has read it."""

from dataclasses import dataclass, field
from pathlib import Path

from firmware.gpsimd.arch import Arch
from firmware.gpsimd.errors import FirmwareError
from rtl.contract.gpsimd import Region

__all__ = ["Function", "Image", "Section"]

_NEVER_LOADED = (".stack", ".noinit")
_OUR_START = "_gp_start"
"""Of firmware/gpsimd/crt0.S, which clears bss; another start code may rely on its loader."""


@dataclass(frozen=True)
class Section:
    """A section that takes memory. `data` is empty if nothing is loaded (stack, bss)."""

    name: str
    address: int
    size_bytes: int
    executable: bool
    data: bytes = field(repr=False)

    @property
    def end(self) -> int:
        return self.address + self.size_bytes


@dataclass(frozen=True)
class Function:
    """Where a function lies, and how many of its instructions the vector unit executes."""

    address: int
    size_bytes: int
    vector_instructions: int


@dataclass(frozen=True)
class Image:
    """A program for GPSIMD cores."""

    path: Path
    entry: int
    sections: tuple[Section, ...]
    arch: Arch | None
    """None if the image does not say what it needs."""
    symbols: dict[str, int] = field(repr=False)
    functions: dict[str, Function] = field(repr=False)

    @property
    def stack_bytes(self) -> int:
        """Stack that the image has set aside, at the bottom of local memory."""
        return sum(section.size_bytes for section in self.sections if section.name == ".stack")

    @property
    def loaded(self) -> tuple[Section, ...]:
        """Sections with contents."""
        return tuple(section for section in self.sections if section.data)

    @property
    def base(self) -> int:
        """Where the image takes local memory to begin: LOCAL, or LOCAL_TOO if it was linked for 2 GiB."""
        return int(Region.LOCAL_TOO if self.sections[0].address >= Region.LOCAL_TOO else Region.LOCAL)

    @property
    def start(self) -> int:
        """Address of the first loaded byte."""
        return min(section.address for section in self.loaded)

    @property
    def end(self) -> int:
        """Address behind the last byte of any section."""
        return max(section.end for section in self.sections)

    def load_bytes(self) -> bytes:
        """What local memory gets from `start` on: `bytes`, and zeros for bss unless our start code clears it."""
        if _OUR_START in self.symbols:
            return self.bytes()
        cleared = max(section.end for section in self.sections if section.name not in _NEVER_LOADED)
        return self.bytes().ljust(cleared - self.start, b"\0")

    def bytes(self) -> bytes:
        """What is loaded, from `start` on, zeros between sections."""
        data = bytearray(max(section.end for section in self.loaded) - self.start)
        for section in self.loaded:
            data[section.address - self.start : section.end - self.start] = section.data
        return bytes(data)

    def entry_of(self, name: str) -> int:
        """Address of the entry `name`, made by GP_ENTRY. FirmwareError lists those there are."""
        if name not in self.entries:
            there = ", ".join(self.entries) or "none"
            raise FirmwareError(f"{self.path}: there is no entry {name!r}; GP_ENTRY has made {there}")
        return self.symbols[name]

    def code_at(self, name: str) -> int | None:
        """Address of the entry or symbol `name`, if it is an instruction; else None."""
        address = self.symbols.get(name)
        inside = address is not None and any(s.executable and s.address <= address < s.end for s in self.loaded)
        return address if inside and address is not None and address % 2 == 0 else None

    def function_at(self, pc: int) -> str:
        """Name of the function that an instruction belongs to; empty if the image does not tell."""
        inside = (n for n, f in self.functions.items() if f.address <= pc < f.address + f.size_bytes)
        return next(inside, "").removeprefix("gp_body_")

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of functions that GP_RUN may start, beside _start."""
        names = (name.removeprefix("gp_body_") for name in self.symbols if name.startswith("gp_body_"))
        return tuple(sorted(name for name in names if name in self.symbols))
