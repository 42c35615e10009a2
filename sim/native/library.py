"""The C functions of driver.cpp, as Python calls on NumPy arrays."""

import ctypes
import time
from collections.abc import Mapping
from ctypes import POINTER, Array, c_char_p, c_double, c_int, c_uint, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from rtl.contract.config import Config
from sim.errors import PlexusError
from sim.native.tracing import TRACE_CORE_SUMS, TRACE_RECORDS, TRACE_SUMS, TRACED, TRACED_CORES, RawTrace

__all__ = [
    "DRIVER_SOURCES",
    "HbmCounters",
    "NativeCore",
    "PRINTED_BYTES",
    "RETIRED",
    "Reason",
    "SAMPLER",
    "hbm_numbers",
    "open_library",
    "opened",
    "whole_sequence",
    "whole_sequences",
]

_HERE = Path(__file__).resolve().parent

DRIVER_SOURCES = (_HERE / "driver.cpp", _HERE / "hbm.cpp")
"""C++ of a core's model: build(..., kind="native", extra_cpp=DRIVER_SOURCES)."""

SAMPLER = _HERE / "sampler.cpp"
"""C++ that notes where the processor is, for a model that is built `profiled`."""

RETIRED = np.dtype([("cycle", "<u8"), ("sequence", "<u4"), ("queue", "<u2"), ("cause", "<u2")])
"""A retire record, as the driver stores it."""


PRINTED_BYTES = 1 << 20
"""Of what a GPSIMD core prints, so much is kept (driver.h has the same number)."""


class Reason(IntEnum):
    """Why a slice of a run ended (driver.h has the same numbers)."""

    LIMIT = 0
    DONE = 1
    FAULT = 2
    STUCK = 3
    TIME = 4
    PROTOCOL = 5
    FATAL = 6


_COUNTERS = (
    "read_bursts",
    "read_beats",
    "write_bursts",
    "write_beats",
    "written_bytes",
    "refused_cycles",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HbmCounters:
    """What the HBM model saw. `refused_cycles`: a beat was due and found no bandwidth."""

    read_bursts: int
    read_beats: int
    write_bursts: int
    write_beats: int
    written_bytes: int
    refused_cycles: int


_DRIVER: dict[str, tuple[object, list[object]]] = {
    "px_error": (c_char_p, []),
    "px_create": (c_void_p, [POINTER(c_uint64), c_uint64]),
    "px_waves": (c_int, [c_void_p, c_char_p, c_char_p, c_uint64, c_uint64]),
    "px_destroy": (None, [c_void_p]),
    "px_reset": (c_int, [c_void_p, c_uint64]),
    "px_limit": (c_int, [c_void_p, c_char_p, c_uint64]),
    "px_load": (c_int, [c_void_p, c_uint64, c_void_p, c_uint64]),
    "px_read": (c_int, [c_void_p, c_uint64, c_void_p, c_uint64]),
    "px_host_write": (c_int, [c_void_p, c_uint32, c_uint64]),
    "px_host_read": (c_int, [c_void_p, c_uint32, POINTER(c_uint64)]),
    "px_run": (c_int, [c_void_p, c_uint64, c_uint64, c_uint64, c_uint64]),
    "px_cycle": (c_uint64, [c_void_p]),
    "px_seconds": (c_double, [c_void_p]),
    "px_retired": (c_uint64, [c_void_p]),
    "px_retire_log": (c_uint64, [c_void_p, c_void_p, c_uint64, c_uint64]),
    "px_printed": (c_uint64, [c_void_p, c_uint, c_void_p, c_uint64]),
    "px_hbm_counters": (None, [c_void_p, POINTER(c_uint64)]),
    "px_trace": (c_int, [c_void_p, c_uint64]),
    "px_trace_end": (c_int, [c_void_p, POINTER(c_uint64)]),
    "px_trace_data": (None, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "px_rams": (c_uint64, [c_void_p, c_void_p, c_uint64]),
    "px_ram_shape": (c_int, [c_void_p, c_char_p, POINTER(c_uint64), POINTER(c_uint64)]),
    "px_ram_read": (c_int, [c_void_p, c_char_p, c_uint64, c_uint64, c_void_p]),
}


def whole_sequence(low: int, near: int) -> int:
    """The ticket's number, of which the hardware shows the lower 16 bits: the one nearest to `near`, which
    is how many items of that queue or ring had retired."""
    return max(low, near + (low - near + (1 << 15)) % (1 << 16) - (1 << 15))


def whole_sequences(log: np.ndarray) -> np.ndarray:
    """A retire log, in order, with all bits of its sequence numbers: a queue's never go down."""
    log = log.copy()
    for queue in np.unique(log["queue"]):
        mine = log["queue"] == queue
        low = log["sequence"][mine].astype(np.int64)
        wraps = np.cumsum(np.diff(low, prepend=low[:1]) < 0)
        log["sequence"][mine] = low + (wraps << 16)
    return log


def open_library(path: Path, functions: dict[str, tuple[object, list[object]]]) -> ctypes.CDLL:
    """The library with the types of these functions: name -> (result, arguments)."""
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def opened(model: int | None, what: str) -> int:
    """The address of a model for a call. PlexusError, one sentence, if it has been freed."""
    if model is None:
        raise PlexusError(f"{what} is closed")
    return model


def hbm_numbers(cfg: Config) -> Array[c_uint64]:
    """What the driver is told of HBM (hbm.h, HbmConfig)."""
    hbm = cfg.hbm
    return (c_uint64 * 5)(hbm.ports, hbm.port_bytes, hbm.bytes_per_cycle, cfg.latency_cycles, hbm.capacity_mib << 20)


class NativeCore:
    """A core's model with its HBM, in reset until `reset`. A context manager: leaving frees it.

    Errors: PlexusError with the driver's sentence.
    """

    def __init__(self, library: Path, cfg: Config, *, retire_limit: int = 1 << 20):
        lib = open_library(library, _DRIVER)
        self._adopt(library, lib.px_create(hbm_numbers(cfg), retire_limit))
        if not self._core:
            raise PlexusError(self._error())

    def _adopt(self, library: Path, core: int | None) -> None:
        """Take a core that the library has made."""
        self._lib = open_library(library, _DRIVER)
        self.cpu_seconds = 0.0  # of this thread inside `run`: what the loop costs on a busy machine too
        self._core: int | None = core

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _model(self) -> int:
        return opened(self._core, "the core")

    def close(self) -> None:
        """Free the model and its HBM; writes the waves out."""
        if self._core:
            self._lib.px_destroy(self._core)
            self._core = None

    def _error(self) -> str:
        return self._lib.px_error().decode()

    def _check(self, code: int) -> None:
        if code < 0:
            raise PlexusError(self._error())

    def waves(self, path: Path, *, scope: str = "", first: int = 0, end: int | None = None) -> None:
        """Write what follows into a wave file of the kind that the model was built for; this cycle is number 0.

        Only cycles from `first` on and before `end`, and only what is in `scope` ("top core tensor") and below.
        """
        last = (1 << 64) - 1 if end is None else end
        self._check(self._lib.px_waves(self._core, str(path).encode(), scope.encode(), first, last))

    def reset(self, cycles: int = 16) -> None:
        """Hold reset; the cycle count starts behind it."""
        self._check(self._lib.px_reset(self._model, cycles))

    def limit(self, limits: Mapping[str, int]) -> None:
        """Use so much of what is built, from the next reset on: rtl.contract.limits. PlexusError without the port."""
        for name, value in limits.items():
            self._check(self._lib.px_limit(self._model, f"limit_{name}".encode(), value))

    def load(self, offset: int, data: np.ndarray) -> None:
        """Put the bytes of `data` at `offset` of HBM. PlexusError beyond its end."""
        data = np.ascontiguousarray(data)
        if self._lib.px_load(self._model, offset, data.ctypes.data, data.nbytes) < 0:
            raise PlexusError(f"{data.nbytes} bytes at {offset} lie beyond hbm.capacity_mib")

    def read(self, offset: int, count: int) -> np.ndarray:
        """`count` bytes of HBM from `offset` on, as uint8. PlexusError beyond its end."""
        data = np.empty(count, np.uint8)
        if self._lib.px_read(self._model, offset, data.ctypes.data, count) < 0:
            raise PlexusError(f"{count} bytes at {offset} lie beyond hbm.capacity_mib")
        return data

    def host_write(self, address: int, value: int) -> None:
        """Write a control register; takes one cycle."""
        self._check(self._lib.px_host_write(self._model, address, value))

    def host_read(self, address: int) -> int:
        """Read a control register; takes two cycles."""
        value = c_uint64()
        self._check(self._lib.px_host_read(self._model, address, ctypes.byref(value)))
        return value.value

    def run(
        self,
        max_cycles: int,
        *,
        quiet_cycles: int = 1 << 62,
        fault_quiet_cycles: int = 2000,
        milliseconds: int = 250,
    ) -> Reason:
        """Run until something of Reason happens.

        It is quiet while nothing moves on AXI, nothing retires and no engine's BUSY counter grows.
        `quiet_cycles` of that are STUCK; `fault_quiet_cycles`, once something has halted, end in FAULT.
        Returns after `milliseconds` at the latest, so that the caller can show progress and stop.
        """
        begin = time.thread_time()
        reason = self._lib.px_run(self._model, max_cycles, quiet_cycles, fault_quiet_cycles, milliseconds)
        self.cpu_seconds += time.thread_time() - begin
        return Reason(reason)

    @property
    def message(self) -> str:
        """What PROTOCOL or FATAL was about."""
        return self._error()

    @property
    def cycle(self) -> int:
        """Cycles since reset."""
        return self._lib.px_cycle(self._model)

    @property
    def seconds(self) -> float:
        """Wall time inside `run` so far: the simulation loop alone."""
        return self._lib.px_seconds(self._model)

    @property
    def retired(self) -> int:
        """Instructions retired so far, those beyond the log's limit too."""
        return self._lib.px_retired(self._model)

    def retire_log(self) -> np.ndarray:
        """Retire records (RETIRED) in the order of their cycles, up to the limit."""
        log = np.empty(self.retired, RETIRED)
        count = self._lib.px_retire_log(self._model, log.ctypes.data, 0, len(log))
        return whole_sequences(log[:count])

    def printed(self, core: int) -> bytes:
        """What a program on a GPSIMD core has printed, the first PRINTED_BYTES of it."""
        text = np.empty(self._lib.px_printed(self._model, core, None, 0), np.uint8)
        self._lib.px_printed(self._model, core, text.ctypes.data, len(text))
        return text.tobytes()

    def hbm_counters(self) -> HbmCounters:
        """What the HBM model counted."""
        raw = (c_uint64 * len(_COUNTERS))()
        self._lib.px_hbm_counters(self._model, raw)
        return HbmCounters(**dict(zip(_COUNTERS, raw, strict=True)))

    def start_trace(self, limit: int = TRACE_RECORDS) -> None:
        """Trace what follows, in `limit` records and buckets behind them."""
        self._check(self._lib.px_trace(self._model, limit))

    def end_trace(self) -> RawTrace:
        """The trace so far; nothing follows."""
        numbers = (c_uint64 * 10)()
        if self._lib.px_trace_end(self._model, numbers) < 0:
            raise PlexusError("no trace was started")
        first, cycles, coarse_from, lost, records, buckets, sums, core_records, cores_from, cores_recorded = numbers
        log = np.empty(records, TRACED)
        beats = np.empty((buckets, 2), np.uint32)
        coarse = np.empty((sums, TRACE_SUMS), np.uint32)
        cores = np.empty(core_records, TRACED_CORES)
        core_sums = np.empty(TRACE_CORE_SUMS, np.uint64)
        parts = (log, beats, coarse, cores, core_sums)
        self._lib.px_trace_data(self._model, *(part.ctypes.data for part in parts))
        return RawTrace(
            first=first,
            cycles=cycles,
            coarse_from=coarse_from,
            lost=lost,
            records=log,
            beats=beats,
            coarse=coarse,
            cores=cores,
            cores_from=cores_from,
            cores_recorded=cores_recorded,
            core_sums=core_sums,
        )

    def rams(self) -> list[str]:
        """Scopes of the RAM cells of the design, sorted."""
        size = self._lib.px_rams(self._model, None, 0) + 1
        text = ctypes.create_string_buffer(size)
        self._lib.px_rams(self._model, text, size)
        return sorted(text.value.decode().split())

    def ram(self, name: str) -> np.ndarray:
        """All rows of a RAM cell, uint32 [depth, words], lowest bits first. PlexusError if there is none."""
        width, depth = c_uint64(), c_uint64()
        code = self._lib.px_ram_shape(self._model, name.encode(), ctypes.byref(width), ctypes.byref(depth))
        if code < 0:
            raise PlexusError(f"the model has no RAM {name}")
        rows = np.empty((depth.value, -(-width.value // 32)), np.uint32)
        self._lib.px_ram_read(self._model, name.encode(), 0, depth.value, rows.ctypes.data)
        return rows
