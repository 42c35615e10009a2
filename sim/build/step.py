"""One tool of a build, its words in the build's log."""

from collections.abc import Sequence
from pathlib import Path

from sim.build.children import run_child
from sim.errors import PlexusError
from sim.progress import Progress
from sim.toolchain import environment

__all__ = ["BuildError", "run_step"]

_DISK_FULL = "No space left on device"


class BuildError(PlexusError):
    """A model that could not be built; the text ends with the last lines of the log."""


def run_step(command: Sequence[str], folder: Path, log: Path, progress: Progress, what: str) -> None:
    """Run one tool in `folder`, its words into `log`. It and its children end with us.

    Errors: BuildError with the log's errors and last lines; OSError if a tool met a full disk.
    """
    with log.open("a") as out:
        out.write("$ " + " ".join(command) + "\n")
        out.flush()
        code = run_child(command, folder=folder, environment=environment(), out=out, tick=progress.tick)
    if code:
        text = log.read_text(errors="replace")
        if _DISK_FULL in text:
            raise OSError(28, _DISK_FULL, str(folder))
        errors = [line for line in text.splitlines() if "error" in line.lower()][:5]
        tail = text.splitlines()[-12:]
        shown = "\n".join(dict.fromkeys([*errors, *tail]))
        raise BuildError(f"{what} failed with code {code}:\n{shown}")
