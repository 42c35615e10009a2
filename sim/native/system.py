"""The C functions of system.cpp: cores of one model, joined by delayed wires."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_double, c_int, c_uint, c_uint32, c_uint64, c_void_p
from pathlib import Path
from types import TracebackType
from typing import Self

from rtl.contract.config import Config
from rtl.contract.memmap import core_place
from sim.errors import PlexusError
from sim.native.library import DRIVER_SOURCES, NativeCore, Reason, hbm_numbers, open_library, opened

__all__ = ["CORES_MAX", "DELAY_MAX", "SYSTEM_SOURCES", "NativeSystem"]

SYSTEM_SOURCES = (*DRIVER_SOURCES, Path(__file__).resolve().parent / "system.cpp")
"""C++ of the model of joined cores: build(..., kind="native", options={"link": True}, extra_cpp=SYSTEM_SOURCES)."""

CORES_MAX = 64
DELAY_MAX = 4096

_SYSTEM: dict[str, tuple[object, list[object]]] = {
    "px_error": (c_char_p, []),
    "px_system_create": (
        c_void_p,
        [POINTER(c_uint64), POINTER(c_uint32), POINTER(c_uint32), c_uint64, c_uint64, c_uint64],
    ),
    "px_system_destroy": (None, [c_void_p]),
    "px_system_core": (c_void_p, [c_void_p, c_uint]),
    "px_system_reset": (c_int, [c_void_p, c_uint64]),
    "px_system_host_write": (c_int, [c_void_p, c_int, c_uint32, c_uint64]),
    "px_system_host_read": (c_int, [c_void_p, c_uint, c_uint32, POINTER(c_uint64)]),
    "px_system_run": (c_int, [c_void_p, c_uint64, c_uint64, c_uint64, c_uint64, c_uint]),
    "px_system_seconds": (c_double, [c_void_p]),
    "px_system_cpu_seconds": (c_double, [c_void_p]),
    "px_system_beats": (c_uint64, [c_void_p, c_uint]),
    "px_system_plant": (c_int, [c_void_p, c_char_p]),
}


class _JoinedCore(NativeCore):
    """A core of a system. Its registers take cycles of all cores; it runs and is freed with the system."""

    def __init__(self, system: "NativeSystem", index: int, library: Path, address: int):
        self._system, self._index = system, index
        self._adopt(library, address)

    def close(self) -> None:
        self._core = None

    def reset(self, cycles: int = 16) -> None:
        self._system.reset(cycles)

    def host_write(self, address: int, value: int) -> None:
        self._system.host_write(self._index, address, value)

    def host_read(self, address: int) -> int:
        return self._system.host_read(self._index, address)

    def run(self, *args: int, **kwargs: int) -> Reason:
        """Errors: PlexusError."""
        raise PlexusError("a core among others runs with them: NativeSystem.run")

    @property
    def seconds(self) -> float:
        return self._system.seconds


class NativeSystem:
    """Cores with the ids `cores` (memmap.core_id), an HBM each, in reset until `reset`; between any two a wire of
    `delay_cycles` each way. A context manager: leaving frees them.

    `cores[i]` is a NativeCore. Errors: PlexusError, one sentence; ValueError for a core without an endpoint number.
    """

    def __init__(
        self, library: Path, cfg: Config, cores: Sequence[int], *, delay_cycles: int, retire_limit: int = 1 << 20
    ):
        if not 1 <= len(cores) <= CORES_MAX:
            raise PlexusError(f"a system has 1 to {CORES_MAX} cores, not {len(cores)}")
        if len(set(cores)) != len(cores):
            raise PlexusError("two cores of a system have the same id")
        if not 1 <= delay_cycles <= DELAY_MAX:
            raise PlexusError(f"a wire between cores takes 1 to {DELAY_MAX} cycles, not {delay_cycles}")
        self._lib = open_library(library, _SYSTEM)
        ids = (c_uint32 * len(cores))(*cores)
        numbers = cfg.fabric.endpoint_map
        endpoints = (c_uint32 * len(cores))(*(numbers.encode(core_place(core)) for core in cores))
        self._system: int | None = self._lib.px_system_create(
            hbm_numbers(cfg), ids, endpoints, len(cores), delay_cycles, retire_limit
        )
        if not self._system:
            raise PlexusError(self._error())
        self.cores: tuple[NativeCore, ...] = tuple(
            _JoinedCore(self, i, library, self._lib.px_system_core(self._system, i)) for i in range(len(cores))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _model(self) -> int:
        return opened(self._system, "the system of cores")

    def close(self) -> None:
        """Free all cores and their HBM."""
        if self._system:
            self._lib.px_system_destroy(self._system)
            self._system = None
            for core in self.cores:
                core.close()

    def _error(self) -> str:
        return self._lib.px_error().decode()

    def _check(self, code: int) -> None:
        if code < 0:
            raise PlexusError(self._error())

    def reset(self, cycles: int = 16) -> None:
        """Hold all in reset; the cycle count starts behind it."""
        self._check(self._lib.px_system_reset(self._model, cycles))

    def host_write(self, core: int | None, address: int, value: int) -> None:
        """Write a control register of a core, or of all in the same cycle; takes one cycle of all cores."""
        self._check(self._lib.px_system_host_write(self._model, -1 if core is None else core, address, value))

    def host_read(self, core: int, address: int) -> int:
        """Read a control register; takes two cycles of all cores."""
        value = c_uint64()
        self._check(self._lib.px_system_host_read(self._model, core, address, ctypes.byref(value)))
        return value.value

    def run(
        self,
        max_cycles: int,
        *,
        threads: int = 1,
        quiet_cycles: int = 1 << 62,
        fault_quiet_cycles: int = 2000,
        milliseconds: int = 250,
    ) -> Reason:
        """As NativeCore.run, over all cores; DONE when all are done and nothing has moved for 1,024 cycles, so that
        what is on its way has arrived. `threads`: at most one for each core is used; bits and cycles do not depend on
        it."""
        if threads < 1:
            raise PlexusError(f"cores run on at least 1 thread, not {threads}")
        return Reason(
            self._lib.px_system_run(
                self._model, max_cycles, quiet_cycles, fault_quiet_cycles, milliseconds, min(threads, CORES_MAX)
            )
        )

    @property
    def message(self) -> str:
        """What PROTOCOL or FATAL was about."""
        return self._error()

    @property
    def cycle(self) -> int:
        """Cycles since reset."""
        return self.cores[0].cycle

    @property
    def seconds(self) -> float:
        """Wall time inside `run` so far."""
        return self._lib.px_system_seconds(self._model)

    @property
    def cpu_seconds(self) -> float:
        """Of all threads inside `run`."""
        return self._lib.px_system_cpu_seconds(self._model)

    def beats(self, core: int) -> int:
        """Beats of packets that a core has sent to others."""
        return self._lib.px_system_beats(self._model, core)

    def plant(self, fault: str) -> None:
        """Make the wires wrong, for tests of tests: "late" or "lost" (system.cpp)."""
        self._check(self._lib.px_system_plant(self._model, fault.encode()))
