"""Errors of a kernel that is a function name the line of it that they come from."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from firmware.gpsimd.errors import FirmwareError
from firmware.nki.place import last_line
from sim.errors import PlexusError

__all__ = ["at_line"]

_NAMED = re.compile(r"[^\s:]+\.py:\d+")


@contextmanager
def at_line() -> Iterator[None]:
    """An error that a user may meet begins with file:line of the user's last statement, unless it begins so already, or
    no file of the user's is on the way. It stays the error that it is."""
    try:
        yield
    except (PlexusError, FirmwareError) as error:
        where = last_line(error.__traceback__)
        if where and not _NAMED.match(str(error)):
            error.args = (f"{where}: {error}", *error.args[1:])
        raise
