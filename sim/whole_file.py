"""A file that is there whole or not at all, whatever happens while it is written."""

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sim.errors import PlexusError

__all__ = ["whole_file"]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place beside `path` for the body to write to; it becomes `path` at the end, and goes if the body fails.

    The name ends as that of `path` does. Errors: PlexusError if it cannot be written.
    """
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
        raise PlexusError(f"{path} cannot be written: {why}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
