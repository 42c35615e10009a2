"""A kernel that loops for ever and calls nothing of nki is interrupted where it is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_ulong, py_object, pythonapi
from threading import Event, Lock, Thread, get_ident
from time import monotonic

from firmware.nki.place import is_users
from firmware.views import KernelError

__all__ = ["SILENCE_SECONDS", "watched"]

SILENCE_SECONDS = 60.0
"""How long a kernel may run between two calls of nki."""
_LOOKS = 8  # in the time allowed, and at least one a second


class _Endless(BaseException):
    """Raised in the kernel's thread; no `except Exception` of the user's keeps it."""


@contextmanager
def watched(calls: Callable[[], int], seconds: float) -> Iterator[None]:
    """KernelError at the line where this thread is, if `calls()` stays the same for `seconds` and that line is the
    user's, as in a long import it is not."""
    kernel, ended, lock = get_ident(), Event(), Lock()

    def look() -> None:
        seen, since = calls(), monotonic()
        while not ended.wait(min(1.0, seconds / _LOOKS)):
            if (now := calls()) != seen:
                seen, since = now, monotonic()
            elif monotonic() - since >= seconds:
                with lock:
                    frame = sys._current_frames().get(kernel)  # noqa: SLF001 -- the one way to see another thread
                    if frame is not None and not ended.is_set() and is_users(frame.f_code.co_filename):
                        pythonapi.PyThreadState_SetAsyncExc(c_ulong(kernel), py_object(_Endless))

    Thread(target=look, name="nki watch", daemon=True).start()
    try:
        yield
    except _Endless as error:
        text = (
            f"the kernel has called nothing of nki for {seconds:g} s and goes on; if it does not loop for ever, allow "
            "more with --silence (silence= from Python)"
        )
        raise KernelError(text).with_traceback(error.__traceback__) from None
    finally:
        ended.set()
        with lock:  # what was raised and has not come yet never comes
            pythonapi.PyThreadState_SetAsyncExc(c_ulong(kernel), None)
