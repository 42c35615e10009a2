"""NKI kernels on arrays: `plexus.nki.run`. docs/nki.md tells what there is."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from firmware.nki import front
from firmware.nki.modules import modules as modules_of
from firmware.nki.watch import SILENCE_SECONDS
from firmware.program import Program
from rtl.contract.config import Config
from sim.api.configs import load_config
from sim.api.errors import as_errors
from sim.api.execute import execute
from sim.api.options import Options, settled
from sim.api.result import Result
from sim.api.tensor import Tensor, operand
from sim.errors import PlexusError

__all__ = ["modules", "run", "run_named"]


@contextmanager
def modules(config: Any = "small") -> Iterator[None]:
    """`import nki` and `import neuronxcc.nki` work in here, for kernels of one's own file."""
    with modules_of(load_config(config)):
        yield


@as_errors()
def run(
    kernel: str | Callable[..., Any],
    *arrays: Any,
    arguments: Mapping[str, Any] | None = None,
    limit: int = front.LIMIT,
    silence: float = SILENCE_SECONDS,
    **options: Unpack[Options],
) -> Result:
    """Run an NKI kernel on arrays.

    kernel: "FILE.py:KERNEL", or a function made within `plexus.nki.modules()`; decorated with @nki.jit or not.
    arrays: its arguments in order. NumPy arrays and tensors of earlier calls become arrays in HBM, in the format of
        their dtype; all else is handed over as it is. `arguments`: more of them by name.
    limit: calls of nki that the kernel may make. silence: seconds that it may run between two of them.
    options: Options: config, settings, device, check, seed, folder, session.

    Returns outputs by name ("output", or what nl.ndarray(name=) says), the report, cycles. What was lowered is in its
    notes. Errors: plexus.Error, file:line of the kernel and a sentence; plexus.RunError as of plexus.run.
    """
    found = settled(options)
    limits = limits_of(limit, silence)
    given = [_handed(f"argument {i}", value, found.cfg) for i, value in enumerate(arrays)]
    named = {name: _handed(name, value, found.cfg) for name, value in (arguments or {}).items()}
    return execute(_program(kernel, given, named, found.cfg, limits), found)


@as_errors()
def run_named(kernel: str, arguments: Mapping[str, Any], limit: int, silence: float, options: Options) -> Result:
    """The same with arguments by name; if the kernel has no parameters of these names, in their order."""
    found = settled(options)
    limits = limits_of(limit, silence)
    named = {name: _handed(name, value, found.cfg) for name, value in arguments.items()}
    return execute(_program(kernel, [], named, found.cfg, limits, by_order=True), found)


def limits_of(limit: Any, silence: Any) -> dict[str, Any]:
    """Errors: PlexusError unless they are a number of calls and of seconds."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise PlexusError(f"limit is a whole number of calls from 1, not {limit!r}")
    if isinstance(silence, bool) or not isinstance(silence, (int, float)) or not 0 < silence < float("inf"):
        raise PlexusError(f"silence is a number of seconds above 0, not {silence!r}")
    return {"limit": limit, "silence": float(silence)}


def _program(
    kernel: Any, given: list[Any], named: dict[str, Any], cfg: Config, limits: dict[str, Any], by_order: bool = False
) -> Program:
    if callable(kernel):
        with modules_of(cfg):
            return front.build(kernel, given, named, cfg, **limits)
    if not isinstance(kernel, str):
        raise PlexusError(f'a kernel is "FILE.py:KERNEL" or a function, not {type(kernel).__name__}')
    path, colon, name = kernel.rpartition(":")
    if not colon or not path or not name:
        raise PlexusError(f'a kernel of a file is written FILE.py:KERNEL, not "{kernel}"')
    with front.loaded(Path(path), name, cfg) as function:
        if by_order and not set(named) & set(front.parameters(function)):
            given, named = list(named.values()), {}
        return front.build(function, given, named, cfg, name=name, **limits)


def _handed(name: str, value: Any, cfg: Config) -> Any:
    if isinstance(value, np.ndarray | Tensor):
        return operand(name, value, cfg)
    if isinstance(value, tuple) and value and all(isinstance(one, np.ndarray | Tensor) for one in value):
        return tuple(operand(f"{name}_{i}", one, cfg) for i, one in enumerate(value))
    return value
