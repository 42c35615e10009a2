"""Where in the user's file something is said."""

import sys
from pathlib import Path
from types import FrameType, TracebackType

__all__ = ["is_users", "last_line", "line"]

_HERE = str(Path(__file__).resolve().parent)
_ROOT = str(Path(__file__).resolve().parents[2])
_EXAMPLES = str(Path(_HERE, "examples"))
_OURS = tuple(str(Path(_ROOT, room)) for room in ("firmware", "sim", "verif", "rtl"))


def is_users(filename: str) -> bool:
    """Whether a file is the user's: not of this package, of NumPy or of Python."""
    if filename.startswith(_EXAMPLES):
        return True
    library = "site-packages" in filename or filename.startswith(("<", sys.prefix, sys.base_prefix))
    return not library and not filename.startswith(_OURS)


def line() -> str:
    """file:line of the user's statement that is being executed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame is not None else "kernel"


def last_line(traceback: TracebackType | None) -> str:
    """file:line of the user's last statement in a traceback; empty if it has none."""
    found = ""
    while traceback is not None:
        if is_users(traceback.tb_frame.f_code.co_filename):
            found = f"{Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found
