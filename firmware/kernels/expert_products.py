"""Products of experts: W_e^T x_e of several experts on row tiles at once, or one after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firmware.engines.scales import scale_views
from firmware.kernel import HbmView, Kernel, KernelError, Tile, TileView
from firmware.kernels.scale_copies import copy_scales
from firmware.kernels.spans import Span, spans
from firmware.numbers import encode
from firmware.packing import Packed
from rtl.contract.kinds import SCALE_FORMATS, SCALE_ROWS, Kind, scale_slots

__all__ = ["MODES", "Expert", "expert_products"]

MODES = {
    "tiles": "an expert on each row group, all at once",
    "one": "one expert after another, each on row group 0",
    "whole": "one expert after another, each on the whole array",
}
_STAGES = 2  # results of an expert on their way to HBM


@dataclass(frozen=True)
class Expert:
    """Operands of an expert: W [d, f], x^T [d, its tokens], and what each of its tokens counts."""

    number: int
    stationary: Packed
    moving: Packed
    gates: np.ndarray


@dataclass(frozen=True)
class _Side:
    """An operand in SBUF: a tile of its rows for each K tile, and of its scales if it has any."""

    tiles: list[TileView]
    scales: list[TileView]
    slot: int

    def at(self, i: int, columns: Span) -> tuple[TileView, TileView | None]:
        """K tile `i` and its scales."""
        cut = slice(columns.start, columns.stop)
        return self.tiles[i][:, cut], self.scales[i][:, cut] if self.scales else None


class _Party:
    """Experts that are computed at once: their operands share tiles of SBUF, each on the rows of its row tile."""

    def __init__(self, k: Kernel, number: int, experts: Sequence[Expert]):
        self.k, self.number = k, number
        self._tiles: dict[str, Tile] = {}
        self._columns = {
            "w": max(e.stationary.elements.shape[1] for e in experts),
            "x": max(e.moving.elements.shape[1] for e in experts),
        }

    def tile(self, side: str, name: str, dtype: str) -> Tile:
        """All partitions of what the experts have under this name."""
        if name not in self._tiles:
            self._tiles[name] = self.k.sbuf(
                f"party{self.number}_{name}",
                partitions=self.k.cfg.partitions,
                columns=self._columns[side],
                dtype=dtype,
            )
        return self._tiles[name]


class _Work:
    """An expert on its tile: operands in SBUF, sums in banks of its own, results on their way out."""

    def __init__(
        self, k: Kernel, party: _Party, expert: Expert, start: int, rows: int, tiles: int, sums: Sequence[TileView]
    ):
        self.k, self.party, self.expert, self.tiles, self.sums = k, party, expert, tiles, sums
        self.start, self.rows = start, rows
        n, f = expert.moving.elements.shape[1], expert.stationary.elements.shape[1]
        self.stationary = self._side("w", expert.stationary, 0)
        self.moving = self._side("x", expert.moving, 1)
        self.depth = spans(expert.moving.elements.shape[0], rows)
        width = min(sums[0].elements, k.cfg.tensor.moving_max, n)
        self.blocks = [(m, c) for m in spans(f, k.cfg.tensor.cols) for c in spans(n, width)]
        name = f"{expert.number}"
        gates = k.hbm(f"gates{name}", (n,), "fp32", np.ascontiguousarray(encode(expert.gates, "fp32")))
        high = min(f, k.cfg.tensor.cols)
        self.gates = k.sbuf(f"weights{name}", partitions=high, columns=n, dtype="fp32")
        k.dma(self.gates[:, :], gates.repeat(high))
        self.stages = [k.sbuf(f"y{name}_{i}", partitions=high, columns=width, dtype="fp32") for i in range(_STAGES)]
        self.y = k.hbm(f"y{name}", (f, n), "fp32")

    def _side(self, side: str, operand: Packed, at: int) -> _Side:
        """Bring an operand into SBUF."""
        k, name = self.k, f"{side}{self.expert.number}"
        rows, columns = operand.elements.shape
        source = k.hbm(name, operand.elements.shape, operand.dtype, np.ascontiguousarray(operand.elements))
        tiles: list[TileView] = []
        for i, cut in enumerate(spans(rows, self.rows)):
            tile = self.party.tile(side, f"{side}{i}", operand.dtype)[self.start : self.start + cut.size, :columns]
            k.dma(tile, source[cut.start : cut.stop, :])
            tiles.append(tile)
        if operand.scales is None:
            return _Side(tiles, [], 0)
        kind = next(kind for kind, fmt in SCALE_FORMATS.items() if fmt == operand.scale_dtype)
        slot = at * scale_slots(kind) // 2
        bits = np.ascontiguousarray(operand.scales)
        view = k.hbm(f"{name}_scales", bits.shape, operand.scale_dtype, bits)
        return _Side(tiles, [self._scales(side, i, tile, view, kind, slot) for i, tile in enumerate(tiles)], slot)

    def _scales(self, side: str, i: int, tile: TileView, view: HbmView, kind: Kind, slot: int) -> TileView:
        """Scales of K tile `i`, on the partitions of its blocks."""
        k = self.k
        size = k.cfg.partitions
        block = min(32, size)
        scales = self.party.tile(side, f"{side}_scales{i}", view.dtype)
        home = scales[tile.start // block * block :, : tile.elements]
        row, count = (n // SCALE_ROWS[kind] for n in (i * self.rows, tile.partitions))
        views = scale_views(home, kind, size, slot, tile.start, tile.partitions)
        copy_scales(k, views, view[row : row + count, :])
        return home

    def step(self, block: int, i: int) -> None:
        """Matmul `i` of the chain of a block of the result."""
        features, columns = self.blocks[block]
        sums = self.sums[block % len(self.sums)][: features.size, : columns.size]
        for side, cut in ((self.stationary, features), (self.moving, columns)):
            view, scales = side.at(i, cut)
            more: dict[str, Any] = {"tiles": self.tiles} | ({"slot": side.slot} if scales is not None else {})
            if side is self.stationary:
                self.k.tensor.load(view, scales, **more)
            else:
                self.k.tensor.matmul(view, sums, scales, accumulate=i > 0, **more)

    def leave(self, block: int) -> None:
        """A block of the result, weighted, to HBM."""
        features, columns = self.blocks[block]
        sums = self.sums[block % len(self.sums)][: features.size, : columns.size]
        stage = self.stages[block % _STAGES][: features.size, : columns.size]
        gates = self.gates[: features.size, columns.start : columns.stop]
        self.k.vector.tensor_tensor(stage, sums, "multiply", gates)
        self.k.dma(self.y[features.start : features.stop, columns.start : columns.stop], stage)


def _sums(k: Kernel, shares: int) -> list[list[TileView]]:
    """Whole banks of PSUM that are free, dealt out."""
    bank = k.cfg.psum.bank_bytes
    tiles: list[TileView] = []
    while k.psum_free(bank) >= bank:
        name = f"sums{len(tiles)}"
        tiles.append(k.psum(name, partitions=k.cfg.tensor.cols, columns=bank // 4, align=bank)[:, :])
    if len(tiles) < shares:
        raise KernelError(f"{shares} experts at once need {shares} banks of PSUM of their own, not {len(tiles)}")
    return [tiles[g::shares] for g in range(shares)]


def expert_products(k: Kernel, experts: Sequence[Expert], mode: str) -> None:
    """Outputs `y{e}` [f, tokens of expert e]; the array starts when all operands are in SBUF."""
    tensor = k.cfg.tensor
    groups = tensor.groups if mode != "whole" else 1
    if mode != "whole" and groups == 1:
        raise KernelError(
            f"mode={mode} needs row groups; {k.cfg.name} has {tensor.rows} rows, at least 8 in a group; "
            "mode=whole needs none"
        )
    rows = tensor.rows // groups
    together = groups if mode == "tiles" else 1
    sums = _sums(k, together)
    work: list[_Work] = []
    for first in range(0, len(experts), together):
        members = experts[first : first + together]
        party = _Party(k, first, members)
        for tile, expert in enumerate(members):
            work.append(_Work(k, party, expert, tile * rows, rows, groups, sums[tile]))
            used = len(work[-1].blocks) % len(sums[tile])  # the next expert of the tile goes on with the next bank
            sums[tile] = sums[tile][used:] + sums[tile][:used]
    k.tensor.barrier()
    for first in range(0, len(work), together):
        at_once = work[first : first + together]
        for block in range(max(len(one.blocks) for one in at_once)):
            there = [one for one in at_once if block < len(one.blocks)]
            for i in range(max(len(one.depth) for one in there)):
                for one in there:
                    one.step(block, i)
            for one in there:
                one.leave(block)
