"""Which loads the weights of a product come from, without the weights: each row as a queue of what entered it."""

from collections.abc import Mapping

from rtl.contract.isa import Opcode

__all__ = ["WeightWays"]

_Row = tuple[tuple[int, int], ...]
"""Loads whose columns are in a row, the last one first: (item, columns)."""


class WeightWays:
    """Follows the instructions of the tensor queue in their order; the rules are those of array_kinds.KindsState."""

    def __init__(self, rows: int, cols: int, groups: int):
        self._rows, self._cols, self._groups = rows, cols, groups
        self._shadow: list[_Row] = [()] * rows
        self._working: list[_Row] = [()] * rows
        self._loaded = [False] * groups

    def needs(self, item: int, f: Mapping[str, int]) -> frozenset[int]:
        """Take an instruction, number `item` of the program; of a product the loads whose weights its results hold."""
        tiles = 1 << f["tile"]
        each = self._groups // tiles
        first = f["src0_partition_start"] // (self._rows // tiles) * each
        mine = range(first, first + each)
        rows = range(f["src0_partition_start"], f["src0_partition_start"] + f["src0_partition_count"])
        if f["opcode"] == Opcode.LOAD_STATIONARY:
            self._load(item, rows, f["src0_count0"] * f["src0_count1"] * f["src0_count2"] * f["src0_count3"])
            for group in mine:
                self._loaded[group] = True
        elif f["opcode"] == Opcode.TENSOR_TRANSPOSE:
            for row in self._rows_of(mine):
                self._shadow[row] = ()
        elif f["opcode"] == Opcode.MULTIPLY_MOVING:
            for row in self._rows_of([group for group in mine if self._loaded[group]]):
                self._working[row] = self._shadow[row]
            for group in mine:
                self._loaded[group] = False
            return frozenset(load for row in rows for load in self._within(row, f["dst_partition_count"]))
        return frozenset()

    def _rows_of(self, groups: range | list[int]) -> list[int]:
        size = self._rows // self._groups
        return [row for group in groups for row in range(group * size, (group + 1) * size)]

    def _load(self, item: int, rows: range, columns: int) -> None:
        """Columns move on by those that enter; what leaves the last one is gone."""
        for row in rows:
            there, left = [(item, columns)], self._cols - columns
            for load, width in self._shadow[row]:
                if left <= 0:
                    break
                there.append((load, min(width, left)))
                left -= width
            self._shadow[row] = tuple(there)

    def _within(self, row: int, columns: int) -> list[int]:
        """Loads in the first columns of a row."""
        found, at = list[int](), 0
        for load, width in self._working[row]:
            if at >= columns:
                break
            found.append(load)
            at += width
        return found
