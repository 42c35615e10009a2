"""Where the compiler is: the wheel of Zig beside the running Python, which holds clang and lld."""

import importlib.metadata
import importlib.util
import os
from pathlib import Path

from firmware.gpsimd.errors import FirmwareError

__all__ = ["build_folder", "compiler", "compiler_version", "cplusplus_headers"]

ROOT = Path(__file__).resolve().parents[2]


def build_folder() -> Path:
    """The folder of images and what the compiler keeps; PLEXUS_BUILD puts it elsewhere."""
    return Path(os.environ.get("PLEXUS_BUILD") or ROOT / "build").resolve() / "firmware"


def compiler() -> Path:
    """The program. FirmwareError tells how to get it."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise FirmwareError(
            "the RISC-V compiler (ziglang) is not installed beside this Python: run make firmware-tools"
        )
    return Path(spec.origin).parent / "zig"


def compiler_version() -> str:
    """Version of the wheel."""
    compiler()
    return importlib.metadata.version("ziglang")


def cplusplus_headers(ours: Path) -> tuple[str, ...]:
    """Flags for headers of the C++ library: array, algorithm, type_traits and others that need no code behind them."""
    library = compiler().parent / "lib"
    cplusplus, c = library / "libcxx" / "include", library / "libc" / "include"
    system = [flag for name in ("riscv32-linux-musl", "generic-musl") for flag in ("-isystem", str(c / name))]
    # -I, for its stddef.h comes before the compiler's.
    return (f"-I{cplusplus}", *system, "-include", str(ours / "plexus" / "libcxx_site.h"))
