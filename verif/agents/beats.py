"""Beats of the systolic array: what they are, their words for the ports, and what they must give."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.kinds import DOTS, Kind
from rtl.contract.sparsity import PATTERNS, Sparsity
from rtl.tensor.ports import moving_beat, stationary_beat
from verif.golden.numeric import decode
from verif.golden.tensor import TensorState
from verif.golden.tensor_cells import Cells, cells_of, sparse_cells, sparse_rows

__all__ = ["DENSE", "QUADRANTS", "Beat", "BeatPacker", "Row", "expected_rows"]

QUADRANTS = 4
NUMBERS = tuple(kind for kind in Kind if kind not in (*DOTS, Kind.SPARSE))
DENSE = PATTERNS["4:16"]
"""Pattern code of what is not sparse."""


@dataclass(slots=True)
class Beat:
    """One cycle of the moving or the stationary port; the quadrants may differ."""

    valid: NDArray[np.bool_]  # [4]
    kinds: tuple[Kind, ...]  # of each quadrant
    dtypes: tuple[str, ...]  # of each quadrant
    active: NDArray[np.bool_]  # [rows]
    codes: NDArray[np.uint64]  # [rows]
    scales: NDArray[np.uint8]  # [rows]
    head: NDArray[np.bool_]  # [4]
    tail: NDArray[np.bool_]  # [4]
    tickets: tuple[int, ...]  # of each quadrant
    swap: NDArray[np.bool_]  # [4]; moving only
    shift: NDArray[np.bool_]  # [4]; stationary only
    tags: NDArray[np.uint8]  # [rows]; stationary only
    patterns: tuple[Sparsity, ...]  # of each quadrant, if it is SPARSE

    def cells(self, moving: bool) -> Cells:
        """What the rows hold, [rows]."""
        share = len(self.codes) // QUADRANTS
        parts = [slice(q * share, (q + 1) * share) for q in range(QUADRANTS)]
        return np.concatenate(
            [
                self._sparse(moving, rows, dtype, pattern)
                if kind == Kind.SPARSE
                else cells_of(self.codes[rows].astype(np.uint32), self.scales[rows], kind, dtype)
                for rows, kind, dtype, pattern in zip(parts, self.kinds, self.dtypes, self.patterns, strict=True)
            ]
        )

    def _sparse(self, moving: bool, rows: slice, dtype: str, pattern: Sparsity) -> Cells:
        """Sparse rows of a quadrant: four numbers each, or a weight and its tag."""
        codes = (self.codes[rows, None] >> np.arange(0, 64, 16, dtype=np.uint64)).astype(np.uint16)
        if moving:
            return sparse_rows(decode(codes, dtype))
        return sparse_cells(decode(codes[:, 0], dtype), self.tags[rows], pattern, rows.start)

    def rows(self) -> NDArray[np.bool_]:
        """Rows that take part, [rows]."""
        return self.active & np.repeat(self.valid, len(self.active) // QUADRANTS)

    def shifting(self, groups: int) -> NDArray[np.bool_]:
        """Row groups that shift, [groups]: their first quadrant says so."""
        return (self.valid & self.shift)[:: QUADRANTS // groups]

    def loading(self, groups: int) -> NDArray[np.bool_]:
        """Rows that take a weight, [rows]."""
        return self.rows() & ~np.repeat(self.shifting(groups), len(self.active) // groups)


class BeatPacker:
    """Beats to integers for the ports, one for each quadrant."""

    def __init__(self, cfg: Config):
        self.share = cfg.tensor.rows // QUADRANTS
        self.moving_at = {name: field.offset for name, field in moving_beat(cfg)}
        self.stationary_at = {name: field.offset for name, field in stationary_beat(cfg)}

    def _words(self, beat: Beat | None, at: Mapping[str, int], moving: bool) -> list[int]:
        if beat is None:
            return [0] * QUADRANTS
        words = []
        for q in range(QUADRANTS):
            rows = slice(q * self.share, (q + 1) * self.share)
            vectors = {
                "active": np.packbits(beat.active[rows], bitorder="little"),
                "data": beat.codes[rows].astype("<u8"),
                "scale": beat.scales[rows],
            }
            if not moving:
                tags = np.unpackbits(beat.tags[rows, None], axis=1, count=4, bitorder="little")
                vectors["tags"] = np.packbits(tags, bitorder="little")
            word = int(beat.valid[q]) << at["valid"] | beat.tickets[q] << at["ticket"]
            mode = FORMATS[beat.dtypes[q]].code | beat.kinds[q] << 4
            mode |= beat.patterns[q].code << 7 if beat.kinds[q] == Kind.SPARSE else 0
            word |= mode << at["mode"]
            word |= int(beat.head[q]) << at["head"] | int(beat.tail[q]) << at["tail"]
            word |= int(beat.swap[q]) << at["swap"] if moving else int(beat.shift[q]) << at["shift"]
            for name, vector in vectors.items():
                word |= int.from_bytes(vector.tobytes(), "little") << at[name]
            words.append(word)
        return words

    def moving(self, beat: Beat | None) -> list[int]:
        """Words of moving[0] to moving[3]."""
        return self._words(beat, self.moving_at, True)

    def stationary(self, beat: Beat | None) -> list[int]:
        """Words of stationary[0] to stationary[3]."""
        return self._words(beat, self.stationary_at, False)


@dataclass(slots=True)
class Row:
    """A row that leaves the array: at the sums of a row group, or with `raw` at its transposed bits."""

    beat: int
    group: int
    raw: bool
    ticket: int
    codes: NDArray[np.uint32]  # [cols]
    kind: Kind = Kind.RAW


def expected_rows(state: TensorState, beats: list[tuple[Beat | None, Beat | None]]) -> list[Row]:
    """Every row that leaves because of these beats; `state` moves on."""
    share = state.rows // QUADRANTS
    each = QUADRANTS // state.groups
    out: list[Row] = []
    waiting: list[tuple[Row, Cells, NDArray[np.bool_]]] = []

    def settle() -> None:
        for way in ((Kind.PAIR, Kind.QUAD), (Kind.QUAD_E4M3,), (Kind.SPARSE,), NUMBERS):
            some = [w for w in waiting if w[0].kind in way]
            if some:
                x = np.stack([cells for _, cells, _ in some], axis=1)
                used = np.stack([rows for *_, rows in some], axis=1)
                sums = state.multiply(x, used, way[0])
                for n, (row, *_) in enumerate(some):
                    row.codes = sums[:, n]
        out.extend(row for row, *_ in waiting)
        waiting.clear()

    for i, (moving, stationary) in enumerate(beats):
        if moving is not None:
            swapping = np.repeat(moving.swap & moving.valid, share)
            if swapping.any():
                settle()
                state.swap(swapping)
            start = 0
            for group in range(state.groups):
                top, bottom = group * each, (group + 1) * each - 1
                if moving.valid[top] and moving.head[top]:
                    start = top * share
                if moving.valid[bottom] and moving.tail[bottom]:
                    rows = moving.rows()
                    rows[:start] = False
                    rows[(bottom + 1) * share :] = False
                    row = Row(i, group, False, moving.tickets[bottom], np.zeros(0, np.uint32), moving.kinds[bottom])
                    waiting.append((row, moving.cells(True), rows))
        if stationary is not None:
            shifting = stationary.shifting(state.groups)
            if stationary.valid.any():
                state.push(stationary.cells(False), stationary.loading(state.groups))
            leaving = state.shift(shifting, stationary.head[::each])
            for group in np.flatnonzero(shifting).tolist():
                bottom = (group + 1) * each - 1
                if stationary.valid[bottom] and stationary.tail[bottom]:
                    out.append(Row(i, group, True, stationary.tickets[bottom], leaving[group]))
    settle()
    return out
