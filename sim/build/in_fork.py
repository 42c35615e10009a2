"""A function run in a fork of this process, which takes what it used with it.

To elaborate a core makes seven million objects. Python would search them for cycles of garbage when they are of no more
use: 3 of 17 CPU seconds. A fork ends without, and its memory is the system's before Yosys and compilers need it.
"""

import contextlib
import gc
import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable
from typing import TypeVar

from sim.build.children import ending_with_us, fork_with_group
from sim.errors import PlexusError

__all__ = ["in_fork"]

T = TypeVar("T")

_CHUNK_BYTES = 1 << 20


def _as_bytes(error: BaseException) -> bytes:
    """An error as it is read in the parent: with the places it came through, unless it is a sentence for users."""
    if not isinstance(error, PlexusError):
        error.add_note(traceback.format_exc())
    try:
        told = pickle.dumps((None, error))
        pickle.loads(told)  # some can be written and not read
        return told
    except Exception:
        return pickle.dumps((None, RuntimeError(traceback.format_exc())))


def _work(work: Callable[[], object], end: int) -> None:
    """In the fork: write the result of `work`, or what it raised. Does not return."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.SIG_DFL)
    gc.disable()
    try:
        told = pickle.dumps((work(), None))
    except BaseException as error:
        told = _as_bytes(error)
    with contextlib.suppress(BrokenPipeError), os.fdopen(end, "wb") as out:  # broken: who forked was killed
        out.write(told)


def _read(end: int, tick: Callable[[], None]) -> bytes:
    """All that comes until the other side is closed."""
    parts: list[bytes] = []
    while not parts or parts[-1]:
        while not select.select([end], [], [], 0.25)[0]:
            tick()
        parts.append(os.read(end, _CHUNK_BYTES))
    return b"".join(parts)


def in_fork(work: Callable[[], T], tick: Callable[[], None]) -> T:
    """What `work` returns, which can be pickled. `tick` is called four times a second.

    Where the system does not fork, `work` runs here. Errors: those of `work`; PlexusError if something killed the fork.
    """
    if not hasattr(os, "fork"):
        return work()
    here, there = os.pipe()
    fork = fork_with_group()
    if fork == 0:
        try:
            os.close(here)
            _work(work, there)
        finally:
            os._exit(0)  # the parent's handlers and open files are its own
    os.close(there)
    try:
        with ending_with_us(fork):
            told = _read(here, tick)
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
        os.close(here)
    if not told:
        raise PlexusError(f"the process that elaborates was ended by signal {-code}: is there memory enough?")
    result, error = pickle.loads(told)
    if error is not None:
        raise error
    return result
