"""Programs that we start, and all that they start: none of them outlives us, however we end.

Each runs in a session of its own, so that the whole of it can be killed. Two things see to that: an exception
here (Ctrl-C, and within `ending_in_order` also SIGTERM and SIGHUP) kills it at once, and a shell that reads from us
kills it when nobody is left who could write, as after SIGKILL.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

__all__ = ["ending_in_order", "ending_with_us", "fork_with_group", "run_child"]

_GUARD = 'while read -r line; do groups=$line; done; [ -z "$groups" ] || kill -9 $groups'
"""Each line holds all groups that run; behind the last, whoever wrote is dead."""


class _Guard:
    """The shell that kills what runs if we cannot; one for a process, from its first child on."""

    def __init__(self) -> None:
        self._pipe: IO[str] | None = None
        self._owner = 0
        self._groups: set[int] = set()
        self._turn = threading.Lock()

    def now(self, group: int, *, runs: bool) -> None:
        """A group of processes has begun or ended. Of any thread."""
        with self._turn:
            self._note(group, runs)

    def leave(self) -> None:
        """In a fork, which must not seem to be one who could write."""
        if self._pipe is not None and self._owner != os.getpid():
            self._pipe.close()  # all was flushed
            self._pipe = None

    def _note(self, group: int, runs: bool) -> None:
        if self._owner != os.getpid():  # a fork of a guarded process needs a guard of its own
            shell = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            shell.returncode = 0  # nobody waits for it: it ends after us
            self._pipe, self._owner, self._groups = shell.stdin, os.getpid(), set()
        (self._groups.add if runs else self._groups.discard)(group)
        assert self._pipe is not None
        with contextlib.suppress(BrokenPipeError):  # somebody killed the guard: the first net is left
            self._pipe.write(" ".join(f"-{g}" for g in sorted(self._groups)) + "\n")
            self._pipe.flush()


_guard = _Guard()
_ENDS = (signal.SIGTERM, signal.SIGHUP)


class _Ended(BaseException):
    """A signal that ends this process; nobody but `ending_in_order` catches it."""


@contextlib.contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the body as Ctrl-C does; the process ends by the signal behind it.

    A handler that somebody else has set stays. Outside the main thread nothing can be set, and nothing changes.
    """
    mine = threading.current_thread() is threading.main_thread()
    taken = [s for s in _ENDS if mine and signal.getsignal(s) is signal.SIG_DFL]
    met: list[int] = []

    def ended(number: int, frame: object) -> None:
        met.append(number)
        for s in taken:
            signal.signal(s, signal.SIG_IGN)  # once is enough: what is being undone must not be cut short
        raise _Ended

    try:
        for s in taken:
            signal.signal(s, ended)
        yield
    finally:
        for s in taken:
            signal.signal(s, signal.SIG_DFL)
        if met:
            os.kill(os.getpid(), met[0])


def fork_with_group() -> int:
    """As os.fork: a child that leads a group of its own, for `ending_with_us`, so Ctrl-C does not reach it."""
    fork = os.fork()
    if fork == 0:
        _guard.leave()
    with contextlib.suppress(PermissionError, ProcessLookupError):  # both sides do it: neither can come too late
        os.setpgid(fork, fork)
    return fork


@contextlib.contextmanager
def ending_with_us(group: int) -> Iterator[None]:
    """The body waits for the process that leads this group: no member is left behind an exception, nor behind our own
    end."""
    try:
        _guard.now(group, runs=True)
        yield
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        raise
    finally:
        _guard.now(group, runs=False)


def run_child(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], out: IO[str], tick: Callable[[], None]
) -> int:
    """Run a program, its words into `out`, with a `tick` four times a second. Returns its exit code."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        with ending_with_us(process.pid):
            while True:
                try:
                    return process.wait(timeout=0.25)
                except subprocess.TimeoutExpired:
                    tick()
    except BaseException:
        process.wait()
        raise
