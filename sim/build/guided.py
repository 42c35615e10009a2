"""A model compiled twice: once to count where it goes, once to go there fast (g++'s profile-guided optimisation)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.build.step import run_step
from sim.errors import PlexusError
from sim.progress import Progress
from sim.toolchain import compiler, compiler_says

__all__ = ["CONFIG", "Training", "compile_guided", "need_guidable"]

CONFIG = "trained.json"
"""The configuration as `command` of a Training finds it, beside the model."""

_COUNT = "-fprofile-generate -fprofile-update=single"
_USE = "-fprofile-use -fprofile-correction -Wno-missing-profile"


@dataclass(frozen=True, slots=True)
class Training:
    """`command`, with the path of the counting model behind it, makes it run. `key`: what the runs are."""

    command: tuple[str, ...]
    key: str


def need_guidable() -> None:
    """Errors: PlexusError if the compiler is not g++, whose counts and flags these are."""
    macros = compiler_says("-dM", "-E", "-x", "c++")
    if "__GNUC__" not in macros or "__clang__" in macros:
        raise PlexusError(
            f"--fast needs a model that counts, which is built with g++ only, and {compiler()} is another"
        )


def compile_guided(
    folder: Path,
    name: str,
    make: Callable[[str, str], Sequence[str]],
    training: Training,
    config: dict[str, Any],
    log: Path,
    progress: Progress,
) -> None:
    """Leave the model `name` in `folder`, optimised for what it did in training.

    `make`: the command, given flags for the model's C++ and for the link.
    """
    obj = folder / "obj"
    kept = {path.name for path in obj.glob("*.o")}
    run_step(make(_COUNT, "-fprofile-generate"), obj, log, progress, "compiling the model that counts")
    (folder / CONFIG).write_text(json.dumps(config))
    progress.stage("train")
    run_step([*training.command, str(folder / name)], folder, log, progress, "training the model")
    (folder / name).unlink()
    for left in (*obj.glob("*.gch"), *obj.glob("*.a"), *obj.glob("*.o")):
        if left.name not in kept:
            left.unlink()
    progress.stage("compile again")
    run_step(make(_USE, ""), obj, log, progress, "compiling the model")
