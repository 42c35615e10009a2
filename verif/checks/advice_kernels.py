"""Kernels that do the same work twice: so that a rule of sim/advice applies, and as its advice says.

Each takes a Kernel and whether to follow the advice, and returns its useful multiply-adds. `tiny` is what they fit.
"""

from collections.abc import Callable

import numpy as np

from firmware.kernel import HbmView, Kernel, Tile, TileView
from firmware.numbers import encode

__all__ = ["KERNELS"]

_RNG = np.random.default_rng(0)
P = 8  # partitions, rows and columns of tiny


def _given(k: Kernel, name: str, columns: int, dtype: str = "bf16", partitions: int = P) -> HbmView:
    """An input of positive numbers."""
    return k.hbm(name, (partitions, columns), dtype, encode(_RNG.uniform(0.5, 1.5, (partitions, columns)), dtype))


def _loaded(k: Kernel, name: str, columns: int, dtype: str = "bf16") -> Tile:
    tile = k.sbuf(name, partitions=P, columns=columns, dtype=dtype)
    k.dma(tile[:, :], _given(k, f"{name}_hbm", columns, dtype)[:, :])
    return tile


def _stored(k: Kernel, name: str, view: TileView) -> None:
    k.dma(k.hbm(name, view.shape, view.dtype)[:, :], view)


def _from_psum(k: Kernel, name: str, sums: TileView) -> None:
    out = k.sbuf(f"{name}_out", partitions=sums.partitions, columns=sums.elements, dtype="fp32")
    k.vector.copy(out[:, :], sums)
    _stored(k, name, out[:, :])


def array_unfilled(k: Kernel, follow: bool) -> int:
    """K = 128 in tiles of half the array's rows, or of all."""
    a, b = _loaded(k, "a", 16 * P), _loaded(k, "b", 16 * 16)
    sums = k.psum("sums", partitions=P, columns=16)
    starts = (0,) if follow else (0, P // 2)
    height = P if follow else P // 2
    for again in range(4):
        for i in range(16):
            for start in starts:
                rows = slice(start, start + height)
                k.tensor.load(a[rows, P * i : P * (i + 1)])
                k.tensor.matmul(b[rows, 16 * i : 16 * (i + 1)], sums[:, :], accumulate=bool(again or i or start))
    _from_psum(k, "c", sums[:, :])
    return 4 * 128 * P * 16


def exposed_load(k: Kernel, follow: bool) -> int:
    """64 columns a stationary operand, or 8 at a time."""
    a, b = _loaded(k, "a", 8 * P), _loaded(k, "b", 64)
    step = 64 if follow else 8
    sums = k.psum("sums", partitions=P, columns=64)
    for at in range(0, 64, step):
        for i in range(8):
            k.tensor.load(a[:, P * i : P * (i + 1)])
            k.tensor.matmul(b[:, at : at + step], sums[:, at : at + step], accumulate=i > 0)
    _from_psum(k, "c", sums[:, :])
    return 8 * 64 * P * P


def transposes(k: Kernel, follow: bool) -> int:
    """Weights that are turned by the array first, or lie in HBM turned."""
    w, b = _loaded(k, "w", 8 * P), _loaded(k, "b", 16)
    sums = k.psum("sums", partitions=P, columns=16, align=256)
    turned = k.psum("turned", partitions=P, columns=P, align=256)
    held = k.sbuf("held", partitions=P, columns=P, dtype="bf16")
    for i in range(8):
        tile = w[:, P * i : P * (i + 1)]
        if not follow:
            k.tensor.transpose(tile, turned[:, :])
            k.vector.copy(held[:, :], turned[:, :])
            tile = held[:, :]
        k.tensor.load(tile)
        k.tensor.matmul(b[:, :], sums[:, :], accumulate=i > 0)
    _from_psum(k, "c", sums[:, :])
    return 8 * P * P * 16


def wide_operands(k: Kernel, follow: bool) -> int:
    """Copies of FP32, or of BF16."""
    dtype = "bf16" if follow else "fp32"
    x = _loaded(k, "x", 256, dtype)
    y = k.sbuf("y", partitions=P, columns=256, dtype=dtype)
    for _ in range(4):
        k.vector.tensor_scalar(y[:, :], x[:, :], "multiply", 0.5)
        k.vector.tensor_scalar(x[:, :], y[:, :], "multiply", 2.0)
    _stored(k, "out", y[:, :])
    return 0


def reciprocals(k: Kernel, follow: bool) -> int:
    """x / s for a row's one s: a reciprocal of s everywhere, or of a column."""
    x, s = _loaded(k, "x", 64, "fp32"), _loaded(k, "s", 64, "fp32")
    y, inverse = (k.sbuf(n, partitions=P, columns=64, dtype="fp32") for n in ("y", "inverse"))
    if follow:
        k.vector.reciprocal(inverse[:, :1], s[:, :1])
        k.vector.tensor_scalar(y[:, :], x[:, :], "multiply", inverse[:, :1])
    else:
        k.vector.reciprocal(inverse[:, :], s[:, :])
        k.vector.tensor_tensor(y[:, :], x[:, :], "multiply", inverse[:, :])
    _stored(k, "out", y[:, :])
    return 0


def _copies(k: Kernel, on_vector: Callable[[int], bool]) -> int:
    """Eight copies of 128 FP32."""
    x = _loaded(k, "x", 128, "fp32")
    for i in range(8):
        y = k.sbuf(f"y{i}", partitions=P, columns=128, dtype="fp32")
        (k.vector if on_vector(i) else k.scalar).copy(y[:, :], x[:, :])
        _stored(k, f"out{i}", y[:, :])
    return 0


def vector_to_scalar(k: Kernel, follow: bool) -> int:
    """Copies by the vector engine, or every other one by the scalar engine."""
    return _copies(k, lambda i: not follow or i % 2 == 0)


def scalar_to_vector(k: Kernel, follow: bool) -> int:
    """Copies by the scalar engine, or every other one by the vector engine."""
    return _copies(k, lambda i: follow and i % 2 == 0)


def reduction_units(k: Kernel, follow: bool) -> int:
    """512 elements, summed in pairs or by 64."""
    x = _loaded(k, "x", 512, "fp32")
    size = 64 if follow else 2
    y = k.sbuf("y", partitions=P, columns=256, dtype="fp32")
    k.vector.memset(y[:, :], 0.0)
    for _ in range(4):
        k.vector.reduce(y[:, : 512 // size], x[:, :].split(0, size), "add")
    _stored(k, "out", y[:, :])
    return 0


def table_loads(k: Kernel, follow: bool) -> int:
    """Two functions in turn, 16 times each before the other, a table of each or of both."""
    x = _loaded(k, "x", 512, "fp32")
    y = k.sbuf("y", partitions=P, columns=512, dtype="fp32")
    for i in range(6):
        name = ("sigmoid", "tanh")[i % 2]
        k.scalar.load_table(("sigmoid", "tanh") if follow else (name,))
        for _ in range(16):
            k.scalar.activation(y[:, :], x[:, :], name)
    _stored(k, "out", y[:, :])
    return 0


def short_rows(k: Kernel, follow: bool) -> int:
    """2 KiB a partition in rows of 8 bytes, or of 256."""
    size = 256 if follow else 8
    source = k.hbm(
        "rows", (2048 // size, P, size), "uint8", _RNG.integers(0, 256, (2048 // size, P, size), dtype=np.uint8)
    )
    tile = k.sbuf("x", partitions=P, columns=2048, dtype="uint8")
    for half in range(2):
        rows = slice(half * 1024 // size, (half + 1) * 1024 // size)
        k.dma(tile[:, 1024 * half : 1024 * (half + 1)].split(0, size), source[rows].permute((1, 0, 2)))
    _stored(k, "out", tile[:, :64])
    return 0


def short_instructions(k: Kernel, follow: bool) -> int:
    """A chain of four steps, of 8 columns at a time, or of 128."""
    x = _loaded(k, "x", 128)
    step = 128 if follow else 8
    for at in range(0, 128, step):
        part = x[:, at : at + step]
        for _ in range(4):
            k.vector.tensor_scalar(part, part, "multiply", 0.5)
    _stored(k, "out", x[:, :])
    return 0


def descriptors(k: Kernel, follow: bool) -> int:
    """1 KiB a partition in 32 copies in turn, or in one."""
    width = 1024 if follow else 32
    source = _given(k, "given", 1024, "uint8")
    tile = k.sbuf("x", partitions=P, columns=1024, dtype="uint8")
    done = []
    for at in range(0, 1024, width):
        done = [k.dma(tile[:, at : at + width], source[:, at : at + width], after=done)]
    _stored(k, "out", tile[:, :])
    return 0


def exposed_copies(k: Kernel, follow: bool) -> int:
    """512 columns in one copy or in eight, and two steps of work on each eighth."""
    x, y = (k.sbuf(name, partitions=P, columns=512, dtype="fp32") for name in ("x", "y"))
    source = _given(k, "given", 512, "fp32")
    pieces = [slice(64 * i, 64 * (i + 1)) for i in range(8)]
    for columns in pieces if follow else [slice(0, 512)]:
        k.dma(x[:, columns], source[:, columns])
    for columns in pieces:
        k.vector.tensor_scalar(y[:, columns], x[:, columns], "multiply", 2.0)
        k.scalar.copy(x[:, columns], y[:, columns])
    _stored(k, "out", x[:, :16])
    return 0


def single_buffered(k: Kernel, follow: bool) -> int:
    """Eight tiles in, doubled, and out; by way of one buffer, or of one each."""
    source, target = _given(k, "given", 8 * 128), k.hbm("y", (P, 8 * 128), "bf16")
    tiles = [k.sbuf(f"x{i}", partitions=P, columns=128, dtype="bf16") for i in range(8 if follow else 1)]
    made = [k.sbuf(f"y{i}", partitions=P, columns=128, dtype="bf16") for i in range(8 if follow else 2)]
    for i in range(8):
        x, y = tiles[i % len(tiles)], made[i % len(made)]
        columns = slice(128 * i, 128 * (i + 1))
        k.dma(x[:, :], source[:, columns])
        k.vector.tensor_scalar(y[:, :], x[:, :], "multiply", 2.0)
        k.dma(target[:, columns], y[:, :])
    return 0


def _pieces(k: Kernel, follow: bool, step: int) -> int:
    """A copy of 512 columns in pieces, or at once."""
    x, y = (k.sbuf(name, partitions=P, columns=512, dtype="bf16") for name in ("x", "y"))
    k.vector.memset(x[:, :], 1.0)
    step = 512 if follow else step
    for at in range(0, 512, step):
        k.vector.copy(y[:, at : at + step], x[:, at : at + step])
    _stored(k, "out", y[:, :32])
    return 0


def fetched_bytes(k: Kernel, follow: bool) -> int:
    """Behind a narrow HBM."""
    return _pieces(k, follow, 8)


def fetch(k: Kernel, follow: bool) -> int:
    """Behind a far HBM."""
    return _pieces(k, follow, 16)


def reread(k: Kernel, follow: bool) -> int:
    """Eight products with one moving operand, read for each of them or once."""
    a = _loaded(k, "a", 8 * P)
    moving = _given(k, "moving", 64)
    sums = k.psum("sums", partitions=P, columns=64)
    tiles = [k.sbuf(f"b{i}", partitions=P, columns=64, dtype="bf16") for i in range(2)]
    for i in range(8):
        b = tiles[0 if follow else i % 2]
        if i == 0 or not follow:
            k.dma(b[:, :], moving[:, :])
        k.tensor.load(a[:, P * i : P * (i + 1)])
        k.tensor.matmul(b[:, :], sums[:, :], accumulate=i > 0)
    _from_psum(k, "c", sums[:, :])
    return 8 * P * P * 64


def sbuf_banks(k: Kernel, follow: bool) -> int:
    """Vector and scalar engine read every 16th number at once, of the same bank or of two."""
    x = _loaded(k, "x", 1024)
    outs = [k.sbuf(name, partitions=P, columns=64, dtype="bf16") for name in ("y", "z")]
    for _ in range(8):
        k.vector.copy(outs[0][:, :], x[:, 0::16])
        k.scalar.copy(outs[1][:, :], x[:, 8::16] if follow else x[:, 0::16])
    for out in outs:
        _stored(k, f"{out.name}_hbm", out[:, :])
    return 0


def psum_banks(k: Kernel, follow: bool) -> int:
    """Sums are read where others are written, in the same bank or in another."""
    a, b = _loaded(k, "a", P), _loaded(k, "b", 32)
    k.tensor.load(a[:, :])
    columns = 64  # a bank of tiny
    sums = k.psum("sums", partitions=P, columns=2 * columns, align=256)
    read = sums[:, columns : columns + 32] if follow else sums[:, 32:64]
    k.tensor.matmul(b[:, :], read)
    out = k.sbuf("out", partitions=P, columns=32, dtype="fp32")
    for i in range(8):
        k.vector.copy(out[:, :], read)
        for _ in range(4):
            k.tensor.matmul(b[:, :], sums[:, :32], accumulate=i > 0)
    _stored(k, "out_hbm", out[:, :])
    _from_psum(k, "c", sums[:, :32])
    return 33 * P * P * 32


KERNELS: dict[str, Callable[[Kernel, bool], int]] = {
    "array-unfilled": array_unfilled,
    "exposed-load": exposed_load,
    "transposes": transposes,
    "wide-operands": wide_operands,
    "reciprocals": reciprocals,
    "vector-to-scalar": vector_to_scalar,
    "scalar-to-vector": scalar_to_vector,
    "reduction-units": reduction_units,
    "table-loads": table_loads,
    "short-rows": short_rows,
    "short-instructions": short_instructions,
    "descriptors": descriptors,
    "exposed-copies": exposed_copies,
    "single-buffered": single_buffered,
    "fetched-bytes": fetched_bytes,
    "fetch": fetch,
    "reread": reread,
    "sbuf-banks": sbuf_banks,
    "psum-banks": psum_banks,
}
"""By the rule."""
