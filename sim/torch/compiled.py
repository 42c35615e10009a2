"""A compiled graph: its programs, built on first use, and torch for the rest."""

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from firmware.graph.emit import emit
from firmware.graph.ir import Graph
from firmware.host_array import HostArray
from firmware.program import Program
from sim.api.errors import as_errors
from sim.api.run import run
from sim.api.tensor import Tensor
from sim.errors import PlexusError
from sim.torch.dtypes import from_bits, same_bits, to_bits
from sim.torch.errors import TorchError, Unsupported
from sim.torch.options import TorchOptions
from sim.torch.record import CALLS, Call, OnCpu
from sim.torch.translate import Translated, translate

__all__ = ["CompiledGraph", "DeviceProgram"]

KEPT = 8
"""Programs of one graph, for so many sets of parameters."""
_current = threading.local()


@dataclass(frozen=True, slots=True)
class _Built:
    program: Program
    constants: tuple[torch.Tensor, ...]  # held, so that their places are not another's
    bits: tuple[HostArray, ...]  # what they were: writes by .data or NumPy change no version

    def of(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether these have the bits of its constants."""
        return all(same_bits(tensor, array) for tensor, array in zip(tensors, self.bits))


def _same(tensor: torch.Tensor) -> tuple[int, int, int]:
    """Which tensor, and how often it was written."""
    version = 0 if tensor.is_inference() else tensor._version
    return tensor.data_ptr(), tensor.untyped_storage()._cdata, version


class DeviceProgram(torch.nn.Module):
    """One program. `static`: which of its inputs are constants or parameters, that stay from call to call."""

    def __init__(self, name: str, found: Translated, static: Sequence[bool], options: TorchOptions):
        super().__init__()
        self.name, self.found, self.static, self.options = name, found, tuple(static), options
        self.programs: OrderedDict[tuple[Any, ...], _Built] = OrderedDict()

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Errors: TorchError, RunError."""
        call: Call = _current.call
        begin = time.monotonic()
        arrays = {v.name: self._bits(t) for v, t, s in zip(self.found.inputs, tensors, self.static) if not s}
        built = self._built(tensors, arrays, call)
        call.build_seconds += time.monotonic() - begin
        shapes = {name: built.program.tensors[name].shape for name in arrays}  # of a single number: (1,)
        given = {n: Tensor(n, HostArray(a.bits.reshape(shapes[n]), a.dtype)) for n, a in arrays.items()}
        result = run(built.program, given, **self.options.of_run(self.name))
        call.results.append(result)
        results = [
            from_bits(result.tensors[value.name].bits.bits, dtype, value.shape)
            for value, dtype in zip(self.found.outputs, self.found.dtypes)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def _bits(self, tensor: torch.Tensor) -> HostArray:
        try:
            return to_bits(tensor)
        except Unsupported as error:
            raise TorchError(f"{self.name}: {error}; it is {', '.join(map(str, tensor.shape))}") from None

    def _built(self, tensors: Sequence[torch.Tensor], arrays: dict[str, HostArray], call: Call) -> _Built:
        constants = tuple(t for t, static in zip(tensors, self.static) if static)
        key = tuple(_same(t) for t in constants)
        if key in self.programs and self.programs[key].of(constants):
            self.programs.move_to_end(key)
            return self.programs[key]
        values = tuple(v for v, static in zip(self.found.inputs, self.static) if static)
        bits = tuple(self._bits(t) for t in constants)
        graph = Graph(
            name=self.name,
            inputs=tuple(v for v, static in zip(self.found.inputs, self.static) if not static),
            outputs=tuple(self.found.outputs),
            nodes=self.found.nodes,
            constants={v.name: array.bits for v, array in zip(values, bits)},
            constant_values=values,
        )
        with as_errors():
            program = emit(self.options.cfg, graph, {name: array.bits for name, array in arrays.items()})
        call.built += 1
        self.programs[key] = built = _Built(program, constants, bits)
        self.programs.move_to_end(key)
        while len(self.programs) > KEPT:
            self.programs.popitem(last=False)
        return built


class CompiledGraph:
    """A graph whose submodules `names` are programs. `static` says of each of its inputs whether it is a parameter.
    `called`: what its only program is called."""

    def __init__(
        self,
        gm: fx.GraphModule,
        names: Sequence[str],
        on_cpu: Sequence[OnCpu],
        static: Sequence[bool],
        options: TorchOptions,
        called: str = "",
    ):
        self._gm, self._on_cpu = gm, tuple(on_cpu)
        places = [node for node in gm.graph.nodes if node.op == "placeholder"]
        stays = {node: flag for node, flag in zip(places, static)}
        for node in list(gm.graph.nodes):
            if node.op == "call_module" and node.target in names:
                part = gm.get_submodule(str(node.target))
                assert isinstance(part, fx.GraphModule)
                kept = [one.op == "get_attr" or stays.get(one, False) for one in node.all_input_nodes]
                for place, one in zip((n for n in part.graph.nodes if n.op == "placeholder"), node.args):
                    place.meta = dict(one.meta)
                found = translate(part.graph, options.products)
                setattr(gm, str(node.target), DeviceProgram(called or str(node.target), found, kept, options))
        gm.recompile()

    def __call__(self, *args: Any) -> Any:
        """As torch calls it."""
        outer, call, begin = getattr(_current, "call", None), Call(on_cpu=self._on_cpu), time.monotonic()
        _current.call = call
        try:
            with torch.no_grad():
                return self._gm(*args)
        except PlexusError as error:
            raise error if isinstance(error, RuntimeError) else TorchError(str(error)) from error
        finally:
            _current.call = outer
            call.seconds = time.monotonic() - begin
            CALLS.append(call)
