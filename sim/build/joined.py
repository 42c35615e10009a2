"""Files of Verilator's that its makefile compiles as one, since each would read the same headers first.

Both functions write into a fresh folder of C++ and return variables of make.
"""

from collections.abc import Iterable
from pathlib import Path

from sim.build.lists import names_in

__all__ = ["join_runtime", "join_slow"]


def _write(path: Path, names: Iterable[str]) -> None:
    path.write_text("".join(f'#include "{name}.cpp"\n' for name in names))


def join_runtime(obj: Path) -> dict[str, str]:
    """Verilator's runtime: three files take 6.4 CPU seconds, one 4.4."""
    names = names_in((obj / "Vtop_classes.mk").read_text(), ("GLOBAL",))
    joined = "_".join(["verilated_with", *(name.removeprefix("verilated_") for name in names if name != "verilated")])
    _write(obj / f"{joined}.cpp", names)
    return {"VK_GLOBAL_OBJS": f"{joined}.o"}


def join_slow(obj: Path) -> dict[str, str]:
    """What a model does once, which is not optimised: eight files and their precompiled header take 8.2 CPU seconds,
    one without the header 6.4."""
    names = names_in((obj / "Vtop_classes.mk").read_text(), ("CLASSES", "SUPPORT"), speeds=("SLOW",))
    _write(obj / "slow.cpp", names)
    (obj / "Vtop__pch.h.slow.gch").touch()  # the makefile finds it made, and nobody reads it
    return {"VM_CLASSES_SLOW": "slow", "VM_SUPPORT_SLOW": "", "VK_PCH_I_SLOW": ""}
