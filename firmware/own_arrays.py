"""Arrays of the user instead of random values: which axes a workload's arrays have, and the parameters they settle.

An axis is named by a parameter of the workload, so arrays say how large everything is, and a size that is given
besides must agree. What is not rounded by request keeps its format: `dtype`, where a workload has it, is by default
that of the arrays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from firmware.host_array import HostArray
from firmware.program import Program
from firmware.views import KernelError
from firmware.workload import Param, Workload
from rtl.contract.config import Config

__all__ = ["WORKLOAD_FORMATS", "OwnArrays"]

WORKLOAD_FORMATS = {"e4m3fn": "fp8"}
"""Where a workload calls a format otherwise."""
_WIDEST = "fp32"

Arrays = Mapping[str, HostArray]
Maker = Callable[[Config, Mapping[str, Any], Arrays, int], Program]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnArrays:
    """How a workload takes arrays. `axes`: of each array the parameters that count its elements. `maker`: builds the
    program; it sets Program.results. `format_of`: arrays whose format is the default of `dtype`. `numbers`: whether
    arrays must be floating point numbers. `without`: parameters that are for values of the workload's own, and why."""

    axes: Mapping[str, tuple[str, ...]]
    maker: Maker
    optional: frozenset[str] = frozenset()
    format_of: tuple[str, ...] = ()
    numbers: bool = True
    without: Mapping[str, str] = field(default_factory=dict)

    def usage(self) -> str:
        """Its arrays in one line."""
        named = [f"{name} [{', '.join(axes)}]" for name, axes in self.axes.items()]
        return ", ".join(f"{text} (optional)" if text.split(" ")[0] in self.optional else text for text in named)

    def settle(self, workload: Workload, given: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
        """All parameters of the workload, from those that are given and from the arrays. KernelError, one sentence."""
        self._check_names(workload.name, arrays)
        for name, why in self.without.items():
            if given.get(name) is not None:
                raise KernelError(f"{name} does not go with arrays of yours: {why}; leave it out")
        sizes: dict[str, int] = {}
        said: dict[str, str] = {}
        for name, array in arrays.items():
            axes = self.axes[name]
            if self.numbers and not array.floating:
                raise KernelError(
                    f"{workload.name} takes arrays of floating point numbers, and {name} is {array.dtype}; cast it"
                )
            if len(array.shape) != len(axes):
                raise KernelError(
                    f"{workload.name} takes {name} as [{', '.join(axes)}], and this one has the shape {array.shape}"
                )
            for axis, size in zip(axes, array.shape, strict=True):
                if sizes.setdefault(axis, size) != size:
                    raise KernelError(
                        f"{name} {array.shape} has {axis}={size}, and {said[axis]} has {axis}={sizes[axis]}; "
                        f"they must agree"
                    )
                said.setdefault(axis, f"{name} {array.shape}")
        for axis in sizes:
            if given.get(axis) is not None and given[axis] != sizes[axis]:
                raise KernelError(
                    f"{axis}={given[axis]} is given, and {said[axis]} has {axis}={sizes[axis]}; leave it out"
                )
        known = {axis: size for axis, size in sizes.items() if axis in workload.params}
        return workload.complete({**self._format(workload.params, arrays), **given, **known})

    def build(
        self, workload: Workload, cfg: Config, params: Mapping[str, Any], arrays: Arrays, seed: int = 0
    ) -> Program:
        """The program of these arrays; `params` as `settle` gave them. KernelError, MemoryFullError."""
        program = workload.build(cfg, params, seed, lambda *said: self.maker(said[0], said[1], arrays, said[2]))
        program.notes.append(f"own arrays: {', '.join(f'{name} {array}' for name, array in arrays.items())}")
        return program

    def _check_names(self, workload: str, arrays: Arrays) -> None:
        missing = [name for name in self.axes if name not in arrays and name not in self.optional]
        extra = [name for name in arrays if name not in self.axes]
        if missing or extra:
            wrong = f"there is {extra[0]}, which it does not take" if extra else ""
            if missing:
                wrong = f"there is no {missing[0]} among {', '.join(arrays)}" if arrays else f"there is no {missing[0]}"
            raise KernelError(f"{workload} takes the arrays {self.usage()}; {wrong}")

    def _format(self, params: Mapping[str, Param], arrays: Arrays) -> dict[str, str]:
        """The default of `dtype`: the arrays' own if they have one that it may be, else the widest."""
        if not self.format_of:
            return {}
        found = {WORKLOAD_FORMATS.get(arrays[name].dtype, arrays[name].dtype) for name in self.format_of}
        choices = params["dtype"].choices
        return {"dtype": found.pop() if len(found) == 1 and found <= set(choices) else _WIDEST}
