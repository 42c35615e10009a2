"""Calls of NKI that there are, and what each becomes."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from typing import Any

from firmware.engines.base import said_at
from firmware.nki.array import Array
from firmware.nki.dtypes import NAMES
from firmware.nki.errors import MissingError
from firmware.nki.place import line
from firmware.nki.trace import current
from firmware.views import KernelError

__all__ = ["CALLS", "MISSING", "SEVERAL_CORES", "Call", "call", "missing", "need_dst"]

_FORMAT = re.compile(r"(?:[bt]?float|u?int)\d\w*")


@dataclass(frozen=True, slots=True)
class Call:
    """`kind`: instruction (one of ours), lowered (several), or built (nothing is sent). `ours`: what it becomes."""

    kind: str
    ours: str
    function: Callable[..., Any]


CALLS: dict[str, dict[str, Call]] = {"nki.isa": {}, "nki.language": {}}

SEVERAL_CORES = "several cores; a program is one core's"

MISSING = {
    "nki.isa": {
        "core_barrier": SEVERAL_CORES,
        "dropout": "no random numbers",
        "local_gather": "the GPSIMD engine gathers by other indices; not connected yet",
        "nc_n_gather": "the GPSIMD engine gathers; not connected yet",
        "rand2": "no random numbers",
        "nonzero_with_count": "the GPSIMD engine has it by other partitions; not connected yet",
        "register_alloc": "no registers that a kernel sees",
        "register_load": "no registers that a kernel sees",
        "rng": "no random numbers",
        "sendrecv": SEVERAL_CORES,
        "sequence_bounds": "no instruction",
        "tensor_copy_dynamic_src": "no addresses from registers",
        "tensor_scalar_cumulative": "tensor_tensor_scan has the operators",
    },
    "nki.language": {
        "all_reduce": "no reduction over partitions in FP32",
        "dropout": "no random numbers",
        "dynamic_range": "no registers that a kernel sees",
        "gather_flattened": "not connected yet",
        "rand": "no random numbers",
        "random_seed": "no random numbers",
    },
}
"""Names that NKI has, and why they are not here; the list is not complete."""


def missing(module: str, name: str) -> MissingError:
    """The sentence about a name that there is not."""
    there = CALLS[module]
    known = MISSING[module].get(name)
    if known:
        return MissingError(f"{module}.{name} has no instruction or lowering here: {known}")
    if _FORMAT.fullmatch(name):
        return MissingError(f"{module}.{name} is no dtype of the machine; there are {', '.join(NAMES)}")
    near = get_close_matches(name, there, n=4, cutoff=0.4)
    instead = f"nearest are {', '.join(near)}" if near else f"there are {', '.join(sorted(there))}"
    return MissingError(f"{module}.{name} has no instruction or lowering here; {instead}")


def call(module: str, kind: str, ours: str, name: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function(trace, ...) into CALLS. If its first parameter is `dst`, which has no default, it may be left out:
    the older style, in which a call returns its result."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        called = name or function.__name__.rstrip("_")
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[1:]
        required = [p.name for p in parameters if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD]
        styled = required[:1] == ["dst"]
        shown = str(signature.replace(parameters=[p.replace(annotation=p.empty) for p in parameters]))

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            trace = current()
            trace.count()
            trace.settle()
            trace.temps.clear()
            if module == "nki.isa":
                kwargs.pop("name", None)  # of an instruction, for the reader
            if styled and "dst" not in kwargs and len(args) + sum(n in kwargs for n in required) < len(required):
                args = (None, *args)
            try:
                bound = signature.bind(trace, *args, **kwargs)
            except TypeError as error:
                raise KernelError(
                    f"{module}.{called}: {error}; it is written {called}{shown.split(' ->')[0]}"
                ) from None
            with said_at(line()):
                return function(*bound.args, **bound.kwargs)

        run.__name__ = called  # operators are known by their names
        CALLS[module][called] = Call(kind, ours, run)
        return run

    return decorate


def need_dst(dst: Any, what: str) -> Array:
    """The destination. KernelError if it is no array."""
    if not isinstance(dst, Array):
        raise KernelError(f"{what} writes to an array, not to {dst!r}")
    return dst
