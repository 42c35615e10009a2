"""A bench's model as one C++ file, compiled and linked without make.

All that Verilator wrote and cocotb's program around it are one file, which begins with a precompiled header: for a
small model a quarter of the processor time that make, two files and their headers take.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from sim.build.lists import names_in
from sim.build.objects import Runtime, do_without, precompiled
from sim.build.step import BuildError, run_step
from sim.progress import Progress
from sim.toolchain import compiler, verilator_root

__all__ = ["compile_as_one"]

_SWITCH = re.compile(r"^(VM_[A-Z_]+) = (\d+)$", re.M)
_WHAT = "compiling the model"
_OF_MAKE = ("VM_C11", "VM_PARALLEL_BUILDS")


def compile_as_one(
    folder: Path,
    name: str,
    programs: Sequence[Path],
    *,
    runtime: Runtime,
    make: Sequence[str],
    flags: Sequence[str],
    libraries: Sequence[str],
    log: Path,
    progress: Progress,
) -> None:
    """Compile what Verilator left in folder/obj, with the C++ files `programs` around it, to folder/name.

    `make`: what compiles objects of the runtime in obj. Errors: BuildError.
    """
    obj = folder / "obj"
    include = verilator_root() / "include"
    classes = (obj / "Vtop_classes.mk").read_text()
    switches = [f"-D{key}={value}" for key, value in _SWITCH.findall(classes) if key not in _OF_MAKE]
    parts = [f"{part}.cpp" for part in names_in(classes, ("CLASSES", "SUPPORT"))]
    (obj / "model.cpp").write_text("".join(f'#include "{part}"\n' for part in (*parts, *programs)))
    shared = [*flags, f"-I{include}", f"-I{include / 'vltstd'}", "-DVERILATOR=1", *switches]
    compile_it = [compiler(), *shared, "-I.", "-c", "model.cpp", "-o", "model.o"]
    header = precompiled(shared, log, progress)
    try:
        run_step([*compile_it, *(["-include", str(header)] if header else [])], obj, log, progress, _WHAT)
    except BuildError:
        if header is None:
            raise
        run_step(compile_it, obj, log, progress, _WHAT)
        do_without(header)
    objects = runtime.objects(names_in(classes, ("GLOBAL",)), obj, make, log, progress)
    link = [compiler(), "model.o", *map(str, objects), *libraries, "-pthread", "-o", f"../{name}"]
    run_step(link, obj, log, progress, "linking the model")
