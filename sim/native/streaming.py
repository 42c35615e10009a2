"""The C function of stream.cpp: arrays through a unit's model."""

from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_uint64, c_void_p
from pathlib import Path

import numpy as np

from sim.errors import PlexusError
from sim.native.library import open_library

__all__ = ["STREAM_SOURCES", "stream"]

STREAM_SOURCES = (Path(__file__).with_name("stream.cpp"),)
"""C++ of a unit's model that arrays are streamed through."""

_STREAM: dict[str, tuple[object, list[object]]] = {
    "px_error": (c_char_p, []),
    "px_stream": (
        c_int,
        [
            c_uint64,
            c_uint64,
            c_uint64,
            c_uint64,
            POINTER(c_char_p),
            POINTER(c_void_p),
            POINTER(c_uint64),
            POINTER(c_uint64),
        ],
    ),
}


def stream(library: Path, latency: int, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> None:
    """Arrays through a unit: element i of every input in cycle i, its outputs `latency` cycles later.

    Keys are port names. Row i of a 2-D array is one element, its first item in the lowest bits. An input
    of length 1 holds; `outputs` are filled in place and give the number of elements.
    Errors: PlexusError with the harness's sentence.
    """
    lib = open_library(library, _STREAM)
    count = len(next(iter(outputs.values())))
    arrays: Sequence[np.ndarray] = [np.ascontiguousarray(a) for a in inputs.values()] + list(outputs.values())
    total = len(arrays)
    code = lib.px_stream(
        count,
        latency,
        len(inputs),
        len(outputs),
        (c_char_p * total)(*(name.encode() for name in [*inputs, *outputs])),
        (c_void_p * total)(*(a.ctypes.data for a in arrays)),
        (c_uint64 * total)(*(a.nbytes // len(a) for a in arrays)),
        (c_uint64 * total)(*(len(a) for a in arrays)),
    )
    if code < 0:
        raise PlexusError(lib.px_error().decode())
