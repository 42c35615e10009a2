"""An NKI kernel and arrays to a program."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from firmware.host_array import HostArray
from firmware.nki.dtypes import dtype_of
from firmware.nki.modules import Jitted, modules
from firmware.nki.place import is_users, last_line
from firmware.nki.trace import Trace
from firmware.nki.watch import SILENCE_SECONDS, watched
from firmware.program import Program
from firmware.views import KernelError, MemoryFullError
from rtl.contract.config import Config
from rtl.contract.memmap import Space

__all__ = ["LIMIT", "build", "loaded", "parameters"]

LIMIT = 200_000
"""Calls of nki that a kernel may make."""


@contextmanager
def _one_sentence(what: str) -> Iterator[None]:
    """Whatever goes wrong in the user's file is a KernelError with file, line and a sentence."""
    try:
        yield
    except (Exception, SystemExit) as error:
        at = last_line(error.__traceback__) or what
        if isinstance(error, SyntaxError) and error.filename and is_users(error.filename):
            at = f"{Path(error.filename).name}:{error.lineno}"
        kind = "" if isinstance(error, KernelError) else f"{type(error).__name__}: "
        text = str(error).strip() or "no message"
        made = MemoryFullError if isinstance(error, MemoryFullError) else KernelError
        raise made(f"{at}: {kind}{' '.join(text.split())}") from None


@contextmanager
def loaded(path: Path, name: str, cfg: Config) -> Iterator[Callable[..., Any]]:
    """The kernel `name` of a file; nki exists in here. KernelError if there is none, or the file does not import."""
    if not path.is_file():
        raise KernelError(f"there is no file {path}")
    before = set(sys.modules)
    folder = str(path.resolve().parent)
    sys.path.append(folder)  # last: a file beside it must not pass for one of ours
    try:
        with modules(cfg):
            with _one_sentence(path.name), watched(int, SILENCE_SECONDS):
                spec = spec_from_file_location(f"nki_kernels_{path.stem}", path.resolve())
                if spec is None or spec.loader is None:
                    raise KernelError(f"{path.name} is no Python file")
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
            function = vars(module).get(name)
            if not callable(function):
                own = [n for n, f in vars(module).items() if isinstance(f, Jitted) or _of(f, module)]
                raise KernelError(f"{path.name} has no kernel {name!r}; it has {', '.join(own) or 'none'}")
            yield function
    finally:
        sys.path.remove(folder)
        for new in set(sys.modules) - before:  # files beside it know this run's nki
            if str(getattr(sys.modules[new], "__file__", None) or "").startswith(folder):
                del sys.modules[new]


def _of(value: Any, module: Any) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__


def parameters(function: Callable[..., Any]) -> list[str]:
    """Names of a kernel's parameters."""
    return list(inspect.signature(function).parameters)


def build(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    cfg: Config,
    *,
    name: str = "",
    limit: int = LIMIT,
    silence: float = SILENCE_SECONDS,
) -> Program:
    """Run a kernel as Python; nki must be there (modules, loaded). HostArrays become arrays in HBM, all else is handed
    over as it is. `limit`: of calls of nki; `silence`: seconds between two of them.
    KernelError: file:line and a sentence."""
    called = name or getattr(function, "__name__", "kernel")
    trace = Trace(cfg, called, limit)
    try:
        return _built(function, arguments, keywords, trace, called, silence)
    except MemoryFullError:
        if not trace.blocked:
            raise
    lifetimes: dict[tuple[int, int], int] = {}
    _built(function, arguments, keywords, Trace(cfg, called, limit, lifetimes, watching=True), called, silence)
    trace = Trace(cfg, called, limit, lifetimes)
    trace.note("arrays of several blocks: each block lives from its first to its last use")
    return _built(function, arguments, keywords, trace, called, silence)


def _built(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    trace: Trace,
    called: str,
    silence: float,
) -> Program:
    try:
        bound = inspect.signature(function).bind(*arguments, **keywords)
    except TypeError as error:
        raise KernelError(f"kernel {called}: {error}; it takes {inspect.signature(function)}") from None
    for key, value in bound.arguments.items():
        bound.arguments[key] = _handed(trace, key, value)
    with trace.running(), _one_sentence(called), watched(lambda: trace.calls, silence):
        returned = function(*bound.args, **bound.kwargs)
        trace.settle()
        outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        tensors = trace.finished(outputs)
    names = _names([tensor.name for tensor in tensors], called)
    formats = {
        new: (tensor.name, tensor.dtype, output.shape)
        for new, tensor, output in zip(names, tensors, outputs, strict=True)
    }

    def results(bits: dict[str, np.ndarray]) -> dict[str, HostArray]:
        return {new: HostArray(bits[old].reshape(shape), dtype) for new, (old, dtype, shape) in formats.items()}

    notes = [f"{text} ({count} x)" if count > 1 else text for text, count in trace.notes.items()]
    if trace.watching:
        return Program(name=called, config=trace.cfg)
    return trace.k.program(
        macs=trace.macs,
        notes=notes,
        results=results,
        sbuf_bytes=trace.arenas[Space.SBUF].peak,
        psum_bytes=trace.arenas[Space.PSUM].peak,
    )


def _names(found: list[str], called: str) -> list[str]:
    if len(set(found)) != len(found):
        raise KernelError(f"kernel {called} returns {found[0]} twice")
    return found


def _handed(trace: Trace, name: str, value: Any) -> Any:
    if isinstance(value, HostArray):
        return trace.hbm(value.shape, dtype_of(value.dtype), name, value.bits)
    if isinstance(value, tuple) and value and all(isinstance(one, HostArray) for one in value):
        return tuple(_handed(trace, f"{name}_{i}", one) for i, one in enumerate(value))
    return value
