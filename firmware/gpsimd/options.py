"""Flags of the compiler: what every build has, by language, and what one may choose."""

from dataclasses import dataclass
from pathlib import Path

from rtl.contract.gpsimd import LOCAL_BYTES, STACK_BYTES

__all__ = ["CXX", "FLAGS", "FOLDER", "LANGUAGES", "RUNTIME", "SCALAR", "Options"]

FOLDER = Path(__file__).resolve().parent

BARE, VECTOR = "generic_rv32+m+c+zicsr+zifencei", "+zve32x+zvl128b"
"""zvl128b is the least of all cores, so an image runs on every one."""

FLAGS = (
    "-target", "riscv32-freestanding-none", "-mabi=ilp32", "-Os", "-g", "-Wall", "-fhosted", "-fno-exceptions",
    "-fno-sanitize=undefined", "-fomit-frame-pointer", "-ffunction-sections", "-fdata-sections", "-fno-stack-protector",
)  # fmt: skip
LANGUAGES: dict[str, tuple[str, ...]] = {
    ".c": ("-std=c11",),
    ".cc": (CXX := ("-std=c++17", "-fno-rtti", "-fno-threadsafe-statics", "-nostdinc++")),
    ".cpp": CXX,
    ".cxx": CXX,
    ".s": (),
    ".S": (),
}
SCALAR = ("-fno-vectorize", "-fno-slp-vectorize")
"""For our own code but that of memory.c: a handful of bytes and registers is no work for vectors."""

RUNTIME = ("-fno-builtin", "-ffile-prefix-map=" + str(FOLDER) + "=plexus")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a build may choose. Sizes in bytes."""

    vector: bool = False
    """With vector instructions."""
    local_bytes: int = LOCAL_BYTES
    stack_bytes: int = STACK_BYTES
    flags: tuple[str, ...] = ()
    """More for the compiler, behind our own: -O2, -DN=4, -Iinclude."""
    lines: bool = True
    """Whether the image tells the line of an instruction; without, it names no folder and is the same wherever it is
    built."""

    @property
    def cpu(self) -> str:
        return BARE + (VECTOR if self.vector else "")
