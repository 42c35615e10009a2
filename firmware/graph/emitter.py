"""What operators share while a graph becomes a program: the kernel, where values lie, functions, weights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod

import numpy as np

from firmware.engines.base import said_at
from firmware.graph.arrays import Array, row_strides
from firmware.graph.ir import Graph, Node, Value
from firmware.graph.kept import Kept
from firmware.graph.vectors import Vectors
from firmware.graph.weights import Weights
from firmware.kernel import HbmView, Kernel, KernelError
from firmware.kernels.identity import identity
from firmware.numbers import bits_dtype
from rtl.contract.config import Config

__all__ = ["Emitter"]


class Emitter:
    """A program under construction. Errors: KernelError."""

    def __init__(self, cfg: Config, graph: Graph, arrays: Mapping[str, np.ndarray] | None):
        self.cfg, self.graph = cfg, graph
        self.k = Kernel(cfg, graph.name)
        self.k.share()
        self.macs = 0
        self._arrays: dict[str, Array] = {}
        self._prepared: dict[tuple[object, ...], Array] = {}
        self._identity: HbmView | None = None
        self._scratch = 0
        self.weights = Weights(self)
        self.kept = Kept(self)
        self.vectors = Vectors(self)
        self.sums = 0  # groups of sums so far: halves of PSUM take turns over all products
        for value in graph.inputs:
            bits = None if arrays is None else arrays.get(value.name)
            if arrays is not None and bits is None:
                raise KernelError(f"graph {graph.name} has an input {value.name}, and no array is given for it")
            self._constant(value, bits)
        inputs = {value.name for value in graph.inputs}
        self._outputs: dict[str, Array] = {}
        for value in graph.outputs:
            if value.name in inputs or value.name in graph.constants:
                raise KernelError(f"graph {graph.name} has an output {value.name} that no node makes")
            self._outputs[value.name] = self._hold(value, self.k.hbm(value.name, value.shape or (1,), value.dtype))

    def constant(self, value: Value) -> np.ndarray | None:
        """Bits of a value that no node makes and no call gives, in its shape."""
        bits = self.graph.constants.get(value.name)
        return None if bits is None else np.asarray(bits).reshape(value.shape)

    def read(self, value: Value) -> Array:
        """Where a value lies in HBM, which has been made."""
        array = self.find(value)
        self.kept.store(array)
        return array

    def find(self, value: Value) -> Array:
        """Where a value would lie in HBM; who calls this asks `kept` for it first."""
        if value.name not in self._arrays:
            bits = self.constant(value)
            if bits is None:
                raise KernelError(f"graph {self.graph.name} has no value {value.name} where a node reads it")
            self._constant(value, bits)
        return self._arrays[value.name]

    def make(self, value: Value) -> Array:
        """Room for what a node makes."""
        if value.name in self._outputs:
            return self._outputs[value.name]
        array = self._hold(value, self.k.hbm(value.name, value.shape or (1,), value.dtype, inner=True))
        self.kept.made(value, array)
        return array

    def alias(self, value: Value, array: Array) -> bool:
        """Let a value be what is there already; False if it is an output, which has a place of its own."""
        if value.name in self._outputs:
            return False
        self._arrays[value.name] = array
        return True

    def temporary(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Room in HBM that a node has for itself."""
        self._scratch += 1
        view = self.k.hbm(f"between {self._scratch}", shape or (1,), dtype, inner=True)
        return Array(view.tensor, 0, shape, row_strides(shape))

    def data(self, bits: np.ndarray, dtype: str) -> Array:
        """A constant that a node has for itself."""
        self._scratch += 1
        view = self.k.hbm(f"constant {self._scratch}", bits.shape, dtype, np.ascontiguousarray(bits))
        return Array(view.tensor, 0, bits.shape, row_strides(bits.shape))

    def prepared(self, key: tuple[object, ...], bits: np.ndarray, dtype: str) -> Array:
        """A constant in the form that a node wants it, once for all nodes that want it so."""
        if key not in self._prepared:
            self._prepared[key] = self.data(bits, dtype)
        return self._prepared[key]

    def identity(self) -> HbmView:
        """BF16, as large as the array."""
        if self._identity is None:
            self._identity = identity(self.k)
        return self._identity

    @contextmanager
    def node(self, number: int, node: Node) -> Iterator[None]:
        """Tiles of a node, which are gone behind it; its instructions carry the user's line and name of it."""
        with said_at(node.where), self.k.scratch(f"{node.op} {number}"):
            yield

    def _constant(self, value: Value, bits: np.ndarray | None) -> None:
        shape = value.shape or (1,)
        if bits is None:
            bits = np.zeros(shape, bits_dtype(value.dtype))
        if bits.size != prod(shape):
            raise KernelError(f"value {value.name} has the shape {value.shape}, and its bits {bits.shape}")
        self._hold(value, self.k.hbm(value.name, shape, value.dtype, np.ascontiguousarray(bits).reshape(shape)))

    def _hold(self, value: Value, view: HbmView) -> Array:
        array = Array(view.tensor, 0, value.shape, row_strides(value.shape))
        self._arrays[value.name] = array
        return array
