"""A kernel or a program of one's own, with arrays."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from firmware.host_array import HostArray
from firmware.kernel import Kernel
from firmware.multiply_adds import counted
from firmware.program import Program
from rtl.contract.config import Config
from rtl.contract.roles import Uses
from sim.api.errors import as_errors
from sim.api.execute import execute
from sim.api.kernel_line import at_line
from sim.api.options import Options, settled
from sim.api.result import Result
from sim.api.tensor import Operand, operand
from sim.errors import PlexusError
from sim.run.host_arrays import encoded

__all__ = ["run"]


@as_errors()
def run(
    kernel: Program | Callable[..., Any],
    arrays: Mapping[str, Operand] | None = None,
    **options: Unpack[Options],
) -> Result:
    """Run a kernel on arrays, on the RTL beside the golden machine, or on the golden machine alone.

    kernel: a function `kernel(k, **tensors)`: k is the Kernel to speak to (docs/kernels.md), and each array is an input
        in HBM (a view, of its shape, in the format of its dtype). It makes outputs by `k.hbm(name, shape, dtype)`, and
        returns nothing, or `k.program(macs=..., notes=..., metrics=...)`. Or a finished Program, whose inputs of these
        names are replaced, the others stay: same shape; floating point numbers are rounded to its format. Its metrics
        are about its own values, and left out then.
    arrays: by name; float64 (as fp32), float32, float16, bfloat16 and FP8 of ml_dtypes, integers of 8, 16 and 32 bits,
        or tensors of earlier calls.
    options: Options: config, settings, device, check, seed, folder, session.

    Returns outputs by name, the report, cycles of the tensor engine's clock. Errors: plexus.Error, a sentence with the
    value and the rule; plexus.RunError, with the result, if the run halts, does not end, or leaves other bits than the
    golden machine.
    """
    if not isinstance(kernel, Program) and not callable(kernel):
        raise PlexusError(f"a kernel is a function or a Program, not {type(kernel).__name__}")
    found = settled(options, kernel if isinstance(kernel, Program) else None)
    given = _given(arrays, found.cfg)
    if isinstance(kernel, Program):
        return execute(counted(_with_arrays(kernel, given)), found)
    return execute(counted(_built(kernel, found.cfg, given)), found)


def _given(arrays: Any, cfg: Config) -> dict[str, HostArray]:
    """Bits of the arrays. PlexusError for what is no mapping of names."""
    if arrays is None:
        return {}
    if not isinstance(arrays, Mapping):
        raise PlexusError(f'arrays are a mapping of names, as {{"x": x}}, not {type(arrays).__name__}')
    if wrong := [name for name in arrays if not isinstance(name, str)]:
        raise PlexusError(f'arrays are a mapping of names, as {{"x": x}}, and {wrong[0]!r} is no name')
    return {name: operand(name, value, cfg) for name, value in arrays.items()}


def _with_arrays(program: Program, arrays: Mapping[str, HostArray]) -> Program:
    """The program with other values of these inputs; the one that was given stays as it is. What it says about results
    is about its own values, and left out."""
    if not arrays:
        return program
    inputs = {name: tensor for name, tensor in program.tensors.items() if tensor.input}
    tensors = dict(program.tensors)
    for name, array in arrays.items():
        if name not in inputs:
            raise PlexusError(f"program {program.name} has no input {name!r}; it has {', '.join(inputs) or 'none'}")
        tensor = inputs[name]
        if array.shape != tensor.shape:
            raise PlexusError(f"tensor {name} has the shape {tensor.shape}, and the array given for it {array.shape}")
        bits: np.ndarray = encoded(name, array, tensor.dtype)
        tensors[name] = replace(tensor, data=bits)
    return replace(program, tensors=tensors, metrics=lambda outputs: {}, meaning=None)


def _built(function: Callable[..., Any], cfg: Config, arrays: Mapping[str, HostArray]) -> Program:
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    name = getattr(inner, "__name__", "kernel")
    _need_arguments(name, function, inner, arrays)
    k = Kernel(cfg, name)
    views = {n: k.hbm(n, array.shape, array.dtype, array.bits) for n, array in arrays.items()}
    with at_line():
        made = function(k, **views)
    if made is None:
        made = k.program()
    if not isinstance(made, Program):
        raise PlexusError(f"kernel {name} returns a {type(made).__name__}; it returns nothing, or k.program(...)")
    if made.config != cfg:
        raise PlexusError(
            f"kernel {name} returns a program for {made.config.name}, and this run is on {cfg.name}: use the Kernel "
            "that it is given"
        )
    if not any(tensor.output for tensor in made.tensors.values()):
        raise PlexusError(f"kernel {name} makes no output: a tensor of k.hbm(name, shape, dtype) without data is one")
    _note_unwritten(made)
    return made


def _need_arguments(
    name: str, function: Callable[..., Any], inner: Callable[..., Any], arrays: Mapping[str, HostArray]
) -> None:
    """PlexusError if the function does not take the arrays. `inner`: without what functools.partial gives it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        if not isinstance(function, partial):
            return  # a callable without a signature says itself what it does not take
        given = ", ".join(
            [*map(repr, function.args), *(f"{key}={value!r}" for key, value in function.keywords.items())]
        )
        takes = _parameters(inner)
        raise PlexusError(f"kernel {name} takes ({takes}), and functools.partial gives it {given}") from None
    try:
        signature.bind(None, **dict.fromkeys(arrays))
    except TypeError:
        raise PlexusError(
            f"kernel {name} takes ({', '.join(map(str, signature.parameters.values()))}), and it is called with the "
            f"Kernel and the arrays {', '.join(arrays) or '(none)'}"
        ) from None


def _parameters(function: Callable[..., Any]) -> str:
    try:
        return ", ".join(map(str, inspect.signature(function).parameters.values()))
    except (TypeError, ValueError):
        return "..."


def _note_unwritten(program: Program) -> None:
    """A note for each output that no copy goes to: its bits, those of memory before a run, are NaN in most formats."""
    written = {descriptor.destination.tensor for descriptor in program.copies()}
    for name, tensor in program.tensors.items():
        if tensor.output and name not in written and Uses.CORES not in program.uses:
            program.notes.append(f"nothing writes output {name}: its bits are those that memory had before")
