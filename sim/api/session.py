"""Tensors that stay from call to call, on one configuration and device."""

import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import WeakSet

from firmware.kernel import Kernel
from firmware.program import Program
from rtl.contract.config import Config
from sim.api.configs import Settings, load_config
from sim.api.tensor import Operand, Tensor, operand
from sim.errors import PlexusError
from sim.run.checking import need_check

if TYPE_CHECKING:
    from sim.api.result import Result

__all__ = ["DEVICES", "Session"]

DEVICES = ("rtl", "golden")


class Session:
    """A configuration and a device, and tensors in its HBM; `plexus.gemm(a, b, session=s)` runs in it. A context
    manager.

    Kept from call to call: the bits of tensors, as `put` and results of calls have left them, without another rounding,
    for as long as somebody holds their handle; they count against hbm.capacity_mib.

    Not kept: SBUF, PSUM, semaphores, tables and programs. Each call resets the core, and its image of HBM, with the
    kept tensors that it uses, is loaded anew, at places of its own. That is the host's work and takes no cycles, and so
    is what operators do to their operands before (the transposition of `a` in `gemm`, rounding to `dtype`).

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
        """Of all calls so far; 0 on the golden machine."""
        self._tensors: WeakSet[Tensor] = WeakSet()
        self._closed = False

    @property
    def hbm_used_bytes(self) -> int:
        """Of tensors whose handles are held."""
        return sum(tensor.size_bytes for tensor in self._tensors)

    def put(self, array: Operand, name: str = "tensor") -> Tensor:
        """Keep an array, in the format of its dtype (float64: fp32). Errors: plexus.Error for a dtype that the machine
        has not, or if HBM is full."""
        return self.keep(Tensor(name, operand(name, array)))

    def keep(self, tensor: Tensor) -> Tensor:
        """Count a tensor as one in HBM. Errors: plexus.Error if HBM is full, or the session is closed."""
        self.need_open()
        capacity = self.config.hbm.capacity_mib << 20
        if tensor not in self._tensors and self.hbm_used_bytes + tensor.size_bytes > capacity:
            raise PlexusError(
                f"tensor {tensor.name} of {tensor.size_bytes} bytes does not fit beside the {self.hbm_used_bytes} in "
                f"use of hbm.capacity_mib = {self.config.hbm.capacity_mib} MiB"
            )
        self._tensors.add(tensor)
        return tensor

    def run(self, kernel: Program | Callable[..., Any], arrays: Mapping[str, Operand] | None = None) -> "Result":
        """`plexus.run` in this session; operands may be tensors, and `Result.tensors` are kept."""
        from sim.api.run import run

        return run(kernel, arrays, session=self)

    def kernel(self, name: str) -> Kernel:
        """An empty kernel of this configuration, to build a Program with."""
        return Kernel(self.config, name)

    def need_open(self) -> None:
        """Errors: plexus.Error if the session is closed."""
        if self._closed:
            raise PlexusError("this session is closed: open another one")

    def close(self) -> None:
        """No more calls; tensors can still be read."""
        self._closed = True
        self._tensors.clear()

    def __repr__(self) -> str:
        used = f"{len(self._tensors)} tensors, {self.hbm_used_bytes:,} bytes of HBM"
        return f"Session({self.config.name}, {self.device}: {used}; {self.cycles:,} cycles)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
