"""Along which parameter an operation may be scaled: where more of it is more of the same, and K is as it is.

A product goes along n or m as long as its layout in SBUF is that of the whole, attention along its heads, what goes row
by row along rows. Sizes have the remainder of the whole one, so that the last tiles are as large.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from firmware.kernels.elementwise import elementwise_piece
from firmware.kernels.gemm import gemm_layout
from firmware.models.operations import Operation
from firmware.views import KernelError
from rtl.contract.config import Config

__all__ = ["Axis", "axis_of"]

WORTH = 0.75  # of the whole, at most, that the three runs have together
FIRST_UNITS = 12  # beginnings that are looked at
FITS_FIRST = 3  # where both sides fit, bringing them in counts most at the beginning
PRODUCT_UNIT = 512  # columns of a moving tile, and whole groups of stationary ones
HEADS_FIRST = 8  # so many heads at least, where a head is of few blocks
BLOCKS_MANY = 8  # blocks of a head with which the pipeline fills within one


@dataclass(frozen=True, slots=True)
class Axis:
    """`name`: of the parameter, `total` of it; three ascending sizes, and the parameters of a size."""

    name: str
    total: int
    sizes: tuple[int, int, int]
    params: Callable[[int], dict[str, Any]]
    grows: bool = True  # larger sizes are laid out as these are

    def further(self) -> "Axis | None":
        """The same from its last size on, in steps twice as long, where the pipeline's beginning counts less; None if
        that is not worth it."""
        first, step = self.sizes[2], 2 * (self.sizes[1] - self.sizes[0])
        sizes = (first, first + step, first + 2 * step)
        worth = sizes[2] < self.total and sum(sizes) <= WORTH * self.total
        return replace(self, sizes=sizes) if self.grows and worth else None


def axis_of(cfg: Config, operation: Operation) -> Axis | None:
    """The axis on which three runs are fewest against the whole; None if they are not worth it on any."""
    finders = {"gemm": _product, "attention": _heads, "layernorm": _rows, "elementwise": _numbers, "rope": _tokens}
    finder = finders.get(operation.workload)
    found = list(finder(cfg, operation.params)) if finder else []
    good = [axis for axis in found if axis.sizes[2] < axis.total and sum(axis.sizes) <= WORTH * axis.total]
    return min(good, key=lambda axis: sum(axis.sizes) / axis.total, default=None)


def _along(params: Mapping[str, Any], name: str) -> Callable[[int], dict[str, Any]]:
    return lambda size: dict(params) | {name: size}


def _product(cfg: Config, params: Mapping[str, Any]) -> Iterator[Axis]:
    how = {name: params[name] for name in ("m", "k", "n", "dtype", "out")}
    if params.get("sparsity") is not None:
        return
    try:
        swapped, whole = gemm_layout(cfg, **how)
    except KernelError:
        return
    for name in "nm":
        moves = (name == "m") == swapped
        # A side that stays does so block by block.
        stays = whole.keeps == ("moving" if moves else "stationary")
        unit = max(PRODUCT_UNIT, whole.chunk_columns[moves] * whole.block if stays else 0)
        rest = params[name] % unit
        for first in range(FITS_FIRST if whole.keeps == "both" else 1, FIRST_UNITS + 1):
            sizes = tuple((first + i) * unit + rest for i in range(3))
            if sum(sizes) > WORTH * params[name]:
                break
            if all(gemm_layout(cfg, **how | {name: size}) == (swapped, whole) for size in sizes):
                yield Axis(name, params[name], (sizes[0], sizes[1], sizes[2]), _along(params, name), grows=False)
                break


def _heads(cfg: Config, params: Mapping[str, Any]) -> Iterator[Axis]:
    """In heads of keys, each with its group of heads of queries."""
    shared = params.get("kv_heads") or params["heads"]
    group = params["heads"] // shared
    queries = group if params.get("queries") == 1 else params.get("queries") or params["seq"]
    blocks = -(-queries // cfg.tensor.cols) * -(-params["seq"] // (2 * cfg.tensor.moving_max))
    if params.get("queries") == 1:
        group = 1  # the heads of a group are the rows of one
    least = 2 if blocks >= BLOCKS_MANY else HEADS_FIRST
    first = -(-least // group)
    step = -(-first // 2)

    def of(size: int) -> dict[str, Any]:
        return dict(params) | {"heads": size * (params["heads"] // shared), "kv_heads": size}

    yield Axis("kv_heads", shared, (first, first + step, first + 2 * step), of)


def _steady(name: str, total: int, unit: int, first: int, step: int, params: Callable[[int], dict[str, Any]]) -> Axis:
    """From `first` units on: by then loads and stores run as far ahead as they can."""
    rest = total % unit
    sizes = tuple((first + i * step) * unit + rest for i in range(3))
    return Axis(name, total, (sizes[0], sizes[1], sizes[2]), params)


def _rows(cfg: Config, params: Mapping[str, Any]) -> Iterator[Axis]:
    if params.get("rows") is not None:
        yield _steady("rows", params["rows"], cfg.partitions, 8, 2, _along(params, "rows"))


def _tokens(cfg: Config, params: Mapping[str, Any]) -> Iterator[Axis]:
    yield _steady("tokens", params["tokens"], cfg.partitions, 8, 2, _along(params, "tokens"))


def _numbers(cfg: Config, params: Mapping[str, Any]) -> Iterator[Axis]:
    """Numbers of a partition: where these are cut does not matter."""
    total, odd = divmod((params.get("rows") or cfg.partitions) * params["columns"], cfg.partitions)
    if not odd:
        piece = elementwise_piece(cfg, params["op"])
        along = _along(dict(params) | {"rows": cfg.partitions}, "columns")
        yield _steady("columns", total, piece, 9, 3, along)
