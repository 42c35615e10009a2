"""Workload `elementwise`: a sum, a function, or silu(a) b of random values, number by number, in BF16.

What stands between the products of a layer: residuals, activations, gates. No number meets another one of its own
array, so the bytes of [rows, columns] are cut for as many partitions as divide them, and one row fills the machine too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from firmware.kernel import Kernel, KernelError, TileView
from firmware.kernels.feed_forward import ACTIVATIONS
from firmware.kernels.gemm import product_metrics
from firmware.kernels.spans import spans
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["ELEMENTWISE", "elementwise", "elementwise_piece"]

SETS = 3  # pieces under way
COLUMNS = 2048  # of a piece, at most


@dataclass(frozen=True, slots=True)
class _Way:
    """How a result comes of a, and of b if there are `two`; a `function` of the table; float64 to judge it by."""

    two: bool
    function: str
    exact: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _of_one(name: str) -> _Way:
    return _Way(False, name, lambda a, b: ACTIVATIONS[name](a))


ELEMENTWISE = {
    "add": _Way(True, "", lambda a, b: a + b),
    "swiglu": _Way(True, "silu", lambda a, b: ACTIVATIONS["silu"](a) * b),
    "gelu": _of_one("gelu"),
    "silu": _of_one("silu"),
}
"""By the name that a workload gives."""


def _piece(k: Kernel, way: _Way) -> int:
    """Numbers of a partition that are worked on at a time; the table, if there is one, is loaded then."""
    if way.function:
        k.scalar.load_table([way.function])
    return max(8, min(COLUMNS, k.sbuf_free() // (SETS * (2 + way.two)) // 16 * 8))


def elementwise_piece(cfg: Config, op: str) -> int:
    """The same without a program."""
    return _piece(Kernel(cfg, "elementwise"), ELEMENTWISE[op])


def elementwise(cfg: Config, a: np.ndarray, b: np.ndarray, *, op: str = "add") -> Program:
    """A program for float32 a and b of one shape, rounded to BF16; `op`: a name of ELEMENTWISE, some leave b out.

    Output: `y` in BF16, [partitions in use, numbers of each]. Error: a rounding to BF16, two for swiglu, and the
    table's. Errors: KernelError.
    """
    if op not in ELEMENTWISE:
        raise KernelError(f"op must be one of {', '.join(ELEMENTWISE)}, not {op!r}")
    if a.size < 1 or a.shape != b.shape:
        raise KernelError(
            f"elementwise needs two arrays of one shape with at least one number, not {a.shape}, {b.shape}"
        )
    way = ELEMENTWISE[op]
    k = Kernel(cfg, "elementwise")
    tall = next(n for n in range(cfg.partitions, 0, -1) if a.size % n == 0)
    shape = (tall, a.size // tall)
    bits = {n: encode(x, "bf16").reshape(shape) for n, x in (("a", a), ("b", b))[: 1 + way.two]}
    given = {n: k.hbm(n, shape, "bf16", x) for n, x in bits.items()}
    y = k.hbm("y", shape, "bf16")
    cuts = spans(shape[1], _piece(k, way))
    names = [*given, "out"]
    sets = [
        {n: k.sbuf(f"{n}{i}", partitions=tall, columns=cuts[0].size, dtype="bf16") for n in names} for i in range(SETS)
    ]
    for number, cut in enumerate(cuts):
        tiles: dict[str, TileView] = {n: t[:, : cut.size] for n, t in sets[number % SETS].items()}
        columns = slice(cut.start, cut.stop)
        for name, source in given.items():
            k.dma(tiles[name], source[:, columns])
        if way.function:
            k.scalar.activation(tiles["out"], tiles["a"], way.function)
        if way.two:
            first, how = (tiles["out"], "multiply") if way.function else (tiles["a"], "add")
            k.vector.tensor_tensor(tiles["out"], first, how, tiles["b"])
        k.dma(y[:, columns], tiles["out"])

    def metrics(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Against float64 of the rounded numbers."""
        real = [decode(x, "bf16").astype(np.float64) for x in bits.values()]
        return product_metrics(decode(outputs["y"], "bf16"), way.exact(real[0], real[-1]))

    notes = [f"the bytes of the rows are taken as [{shape[0]}, {shape[1]}], a row on each partition"]
    return k.program(notes=notes, metrics=metrics)
