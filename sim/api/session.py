"""Tensors that stay from call to call, on one configuration and device."""

import os
from collections import deque
from collections.abc import Callable, Mapping
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from weakref import WeakSet, finalize

import numpy as np

from firmware.kernel import Kernel
from firmware.program import Program
from rtl.contract.config import Config
from sim.api.configs import Settings, load_config
from sim.api.tensor import Operand, Tensor, operand
from sim.errors import PlexusError
from sim.run.checking import need_check
from sim.run.host_arrays import copied

if TYPE_CHECKING:
    from sim.api.options import Options
    from sim.api.result import Result

__all__ = ["DEVICES", "Session"]

DEVICES = ("rtl", "golden")


class Session:
    """A configuration and a device, and tensors in its HBM; `plexus.gemm(a, b, session=s)` runs in it. A context
    manager; threads may share it.

    Kept from call to call: the bits of tensors, as `put` and results of calls have left them, without another rounding,
    for as long as somebody holds their handle; they count against hbm.capacity_mib, beside the tensors of a call.

    Not kept: SBUF, PSUM, semaphores, tables and programs. Each call resets the core, and its image of HBM, with the
    kept tensors that it uses, is loaded anew, at places of its own. That is the host's work and takes no cycles, and so
    is what operators do to their operands before (the transposition of `a` in `gemm`, rounding to `dtype`). A tensor of
    another session is an operand as an array is: a call that takes it counts it.

    config, settings, device, check: as of `plexus.run`. Errors: plexus.Error.
    """

    def __init__(
        self,
        config: str | os.PathLike[str] | Config = "small",
        *,
        settings: Settings = (),
        device: Literal["rtl", "golden"] = "rtl",
        check: str = "golden",
    ):
        if device not in DEVICES:
            raise PlexusError(f"device must be {' or '.join(DEVICES)}, not {device!r}")
        self.config = load_config(config, settings)
        self.device = device
        self.check = need_check(str(check))
        self.cycles = 0
        """Of all calls so far, those that ended in a RunError too; 0 on the golden machine."""
        self._lock = RLock()
        self._tensors: WeakSet[Tensor] = WeakSet()
        self._held_bytes = 0
        self._gone: deque[int] = deque()  # bytes of handles that are gone: a finalizer may run inside the lock
        self._closed = False

    @property
    def hbm_used_bytes(self) -> int:
        """Of tensors whose handles are held."""
        with self._lock:
            while self._gone:
                self._held_bytes -= self._gone.popleft()
            return self._held_bytes

    def put(self, array: Operand, name: str = "tensor") -> Tensor:
        """Keep a copy of an array, in the format of its dtype (float64: fp32); a tensor is kept as it is, with its own
        name. Errors: plexus.Error for a dtype that the machine has not, or if HBM is full."""
        if isinstance(array, Tensor):
            return self.keep(array)
        return self.keep(Tensor(name, copied(operand(name, array, self.config), array)))

    def keep(self, tensor: Tensor) -> Tensor:
        """Count a tensor as one in HBM. Errors: plexus.Error if HBM is full, or the session is closed."""
        if not isinstance(tensor, Tensor):
            raise PlexusError(f"keep takes a plexus.Tensor, not {type(tensor).__name__}: put takes arrays")
        with self._lock:
            self.need_open()
            capacity = self.config.hbm.capacity_mib << 20
            if tensor not in self._tensors and self.hbm_used_bytes + tensor.size_bytes > capacity:
                raise PlexusError(
                    f"tensor {tensor.name} of {tensor.size_bytes} bytes does not fit beside the {self.hbm_used_bytes} "
                    f"in use of hbm.capacity_mib = {self.config.hbm.capacity_mib} MiB"
                )
            self._count(tensor)
        return tensor

    def _count(self, tensor: Tensor) -> None:
        if tensor not in self._tensors:
            self._tensors.add(tensor)
            self._held_bytes += tensor.size_bytes
            finalize(tensor, self._gone.append, tensor.size_bytes).atexit = False

    def run(
        self,
        kernel: Program | Callable[..., Any],
        arrays: Mapping[str, Operand] | None = None,
        **options: Unpack["Options"],
    ) -> "Result":
        """`plexus.run` in this session; operands may be tensors, and `Result.tensors` are kept. options: seed and
        folder, as of `plexus.run`."""
        from sim.api.options import Options
        from sim.api.run import run

        if "session" in options:
            raise PlexusError("session is this one; leave it out")
        inside: Options = {**options, "session": self}
        return run(kernel, arrays, **inside)

    def kernel(self, name: str) -> Kernel:
        """An empty kernel of this configuration, to build a Program with."""
        return Kernel(self.config, name)

    def need_open(self) -> None:
        """Errors: plexus.Error if the session is closed."""
        if self._closed:
            raise PlexusError("this session is closed: open another one")

    def need_room(self, program: Program) -> None:
        """Before a run. Errors: plexus.Error if what a program has in HBM does not fit beside what is kept."""
        with self._lock:
            self.need_open()
            kept = {_place(tensor.bits.bits) for tensor in self._tensors}
            used, capacity = self.hbm_used_bytes, self.config.hbm.capacity_mib << 20
        tensors = program.tensors.values()
        more = sum(t.bytes for t in tensors if t.data is None or _place(t.data) not in kept)
        if used + more > capacity:
            raise PlexusError(
                f"{program.name} needs {more} bytes of HBM beside the {used} that the session keeps, more than "
                f"hbm.capacity_mib = {self.config.hbm.capacity_mib} MiB"
            )

    def after(self, result: "Result") -> None:
        """Count a run. It never refuses one that is over: `need_room` has asked."""
        with self._lock:
            self.cycles += result.cycles or 0
            for tensor in () if self._closed else result.tensors.values():
                self._count(tensor)

    def close(self) -> None:
        """No more calls; tensors can still be read."""
        with self._lock:
            self._closed = True
            self._tensors.clear()
            self._held_bytes, self._gone = 0, deque()

    def __repr__(self) -> str:
        with self._lock:
            used = f"{len(self._tensors)} tensors, {self.hbm_used_bytes:,} bytes of HBM"
            return f"Session({self.config.name}, {self.device}: {used}; {self.cycles:,} cycles)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _place(bits: np.ndarray) -> tuple[int, int]:
    """Where these bits lie on the host, so that an operand that is a kept tensor is known to be it."""
    return bits.ctypes.data, bits.nbytes
