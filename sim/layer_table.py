"""Layers of a model from a table: matrix products, or convolutions as products of their unrolled windows (im2col).

The columns are those of SCALE-Sim's topologies: `Layer, M, N, K` for products C[M, N] = A[M, K] B[K, N]; for
convolutions `Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides`, where
a window is a row of A and the size of the input has its padding in it. A column `Sparsity` (or `N:M`) says of weights,
B, that N of every M numbers along K are kept: gemm keeps numbers of its A, so such a line is the product transposed.
"""

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from rtl.contract.sparsity import PATTERNS
from sim.errors import PlexusError

__all__ = ["LAYER_KINDS", "read_layers"]

_SPARSITY = ("sparsity", "n:m")

LAYER_KINDS = ("m n k", "ifmap height ifmap width filter height filter width channels num filter strides")
_PRODUCT = ("m", "n", "k")
_CONVOLUTION = ("ifmap height", "ifmap width", "filter height", "filter width", "channels", "num filter", "strides")


def _columns(header: list[str]) -> dict[str, int]:
    return {re.sub(r"[\s_]+", " ", name).strip().lower(): n for n, name in enumerate(header) if name.strip()}


def _numbers(row: list[str], columns: Mapping[str, int], wanted: tuple[str, ...], where: str) -> list[int]:
    found: list[int] = []
    for name in wanted:
        at = columns[name]
        text = row[at].strip() if at < len(row) else ""
        if not text.isdecimal() or int(text) < 1:
            raise PlexusError(f"{where} has no {name}: a whole number from 1 belongs there, not {text!r}")
        found.append(int(text))
    return found


def _product(row: list[str], columns: Mapping[str, int], where: str) -> dict[str, str]:
    m, n, k = _numbers(row, columns, _PRODUCT, where)
    return {"m": str(m), "k": str(k), "n": str(n)}


def _convolution(row: list[str], columns: Mapping[str, int], where: str) -> dict[str, str]:
    height, width, window_h, window_w, channels, filters, stride = _numbers(row, columns, _CONVOLUTION, where)
    if window_h > height or window_w > width:
        raise PlexusError(f"{where} has a filter of {window_h} x {window_w} on an input of {height} x {width}")
    windows = ((height - window_h) // stride + 1) * ((width - window_w) // stride + 1)
    return {"m": str(windows), "k": str(window_h * window_w * channels), "n": str(filters)}


def _sparse(row: list[str], columns: Mapping[str, int], sizes: dict[str, str], where: str) -> dict[str, str]:
    """The sizes with the line's pattern, if it has one that leaves numbers out."""
    at = next((columns[name] for name in _SPARSITY if name in columns), len(row))
    text = row[at].strip() if at < len(row) else ""
    found = re.fullmatch(r"(\d+)\s*:\s*(\d+)", text, re.ASCII)
    if text and (not found or not 1 <= int(found[1]) <= int(found[2])):
        raise PlexusError(f"{where} has the sparsity {text!r}: N:M belongs there, with N from 1 to M, or nothing")
    if not found or int(found[1]) == int(found[2]):
        return sizes
    pattern = f"{int(found[1])}:{int(found[2])}"
    if pattern not in PATTERNS:
        raise PlexusError(f"{where} has the sparsity {pattern}; the array has {', '.join(PATTERNS)}")
    return {"m": sizes["n"], "k": sizes["k"], "n": sizes["m"], "sparsity": pattern}


def read_layers(path: Path) -> list[tuple[str, dict[str, str]]]:
    """Name and parameters of `gemm` of every line. Errors: PlexusError with the line, one sentence."""
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise PlexusError(f"{path} cannot be read: {error}") from None
    columns = _columns(rows[0]) if rows else {}
    name = next((n for n in ("layer", "layer name", "layer names") if n in columns), "")
    convolves = set(_CONVOLUTION) <= columns.keys()
    if not name or not (convolves or set(_PRODUCT) <= columns.keys()):
        raise PlexusError(f"{path} needs columns Layer, M, N, K, or Layer name and {', '.join(_CONVOLUTION)}")
    found: list[tuple[str, dict[str, str]]] = []
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        where = f"line {number} of {path}"
        layer = row[columns[name]].strip()
        if not layer or layer in dict(found):
            raise PlexusError(f"{where} has no name of its own: {layer!r}")
        sizes = (_convolution if convolves else _product)(row, columns, where)
        found.append((layer, _sparse(row, columns, sizes, where)))
    if not found:
        raise PlexusError(f"{path} has no layer")
    return found
