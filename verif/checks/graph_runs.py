"""A graph of named arrays on the golden machine at `tiny`, for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from firmware.graph.emit import emit
from firmware.graph.ir import Graph, Node, Value
from firmware.image import build_image
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import named
from verif.golden.machine import GoldenMachine

TINY = named("tiny")
Arrays = Mapping[str, np.ndarray]


def value(name: str, shape: Sequence[int], dtype: str = "fp32") -> Value:
    return Value(name, tuple(shape), dtype)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def graph_of(nodes: Sequence[Node], arrays: Arrays, outputs: Sequence[Value], constants: Arrays) -> Graph:
    known = {v.name: v for node in nodes for v in node.inputs.values()}
    bits = {name: encode(x, known[name].dtype) for name, x in constants.items()}
    inputs = tuple(known[name] for name in arrays)
    return Graph("graph", inputs, tuple(outputs), tuple(nodes), bits, tuple(known[name] for name in constants))


def program_of(
    nodes: Sequence[Node], arrays: Arrays, outputs: Sequence[Value], constants: Arrays | None = None
) -> Program:
    graph = graph_of(nodes, arrays, outputs, constants or {})
    return emit(TINY, graph, {v.name: encode(arrays[v.name], v.dtype) for v in graph.inputs})


def run(
    nodes: Sequence[Node], arrays: Arrays, outputs: Sequence[Value], constants: Arrays | None = None
) -> list[np.ndarray]:
    """Values of the outputs."""
    machine = GoldenMachine(TINY)
    with np.errstate(all="ignore"):
        machine.load(build_image(program_of(nodes, arrays, outputs, constants)))
        found = machine.run().outputs
    assert set(found) == {v.name for v in outputs}
    return [decode(found[v.name], v.dtype).reshape(v.shape) for v in outputs]


def one(
    operator: str,
    arrays: Mapping[str, tuple[np.ndarray, str]],
    shape: Sequence[int],
    dtype: str = "fp32",
    /,
    **attributes: Any,
) -> np.ndarray:
    """The output of a single node; arrays: by what they are to it, with their formats."""
    inputs = {name: value(f"in_{name}", x.shape, kind) for name, (x, kind) in arrays.items()}
    out = value("y", shape, dtype)
    return run([Node(operator, inputs, out, attributes)], {f"in_{n}": x for n, (x, _) in arrays.items()}, [out])[0]


def error(got: np.ndarray, wanted: np.ndarray) -> float:
    """Largest error, in parts of the largest number."""
    return float(np.max(np.abs(got.astype(np.float64) - wanted)) / max(1.0, float(np.max(np.abs(wanted)))))
