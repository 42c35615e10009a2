"""Groups of elements that a row of the array takes in a beat: sizes, formats, scales, and what a load leaves behind.

Written from docs/isa.md; shares encodings with the hardware, no code and no table.
"""

from collections.abc import Mapping

import numpy as np

from rtl.contract.config import Config
from rtl.contract.isa import Opcode
from rtl.contract.kinds import Kind

__all__ = ["RAW_FORMATS", "WeightKinds", "beat_formats_of", "bytes_of", "formats_of", "kept_of", "moving_bytes_of"]
__all__ += ["ratio_of", "scale_format_of", "scale_rows_of", "scaled"]

_EIGHTS, _FP4 = (4, 5, 6), 7  # dtype codes: E4M3FN, E4M3, E5M2; E2M1
_BUSES = ((4, 4), (4, 3), (4, 2), (2, 4), (2, 2), (1, 4), (1, 2))  # by code of sparsity: rows, numbers a row
RAW_FORMATS = (0, 1, 2)
"""Dtype codes that TENSOR_TRANSPOSE takes: FP32, BF16, FP16."""
_SCALES = {Kind.QUAD: (8, 8), Kind.QUAD_E4M3: (4, 4)}  # format of scales, rows of a block


def kept_of(sparsity: int) -> int:
    """Rows of a bus of a pattern of sparsity: the numbers that a group keeps."""
    return _BUSES[sparsity][0]


def ratio_of(sparsity: int) -> int:
    """Moving numbers that a row brings."""
    return _BUSES[sparsity][1]


def moving_bytes_of(sparsity: int) -> int:
    """Bytes of what a row of a moving sparse operand takes in a beat."""
    return 4 if _BUSES[sparsity][1] == 2 else 8


def scaled(kind: int) -> bool:
    """Whether operands of this kind have scales."""
    return kind in _SCALES


def scale_format_of(kind: int) -> int:
    """Dtype code of the scales of a kind."""
    return _SCALES[Kind(kind)][0]


def scale_rows_of(kind: int) -> int:
    """Rows that share a scale; 1 without scales."""
    return _SCALES[Kind(kind)][1] if kind in _SCALES else 1


def formats_of(kind: int, cfg: Config) -> tuple[int, ...]:
    """Dtype codes that an operand of this kind may have in a product."""
    if kind == Kind.ONE:
        return (1, 2, 3, *_EIGHTS)
    if kind in (Kind.HIGH, Kind.LOW):
        return (0,)
    if kind == Kind.SPARSE:
        return (1, 2) if cfg.tensor.sparsity else ()
    if not cfg.tensor.mx or (kind == Kind.QUAD_E4M3 and not cfg.tensor.nvfp4):
        return ()
    if kind == Kind.PAIR:
        return _EIGHTS
    if kind == Kind.QUAD_E4M3:
        return (4, _FP4)
    return (4, 6, _FP4) if kind in _SCALES else ()


def beat_formats_of(kind: int, cfg: Config) -> tuple[int, ...]:
    """Dtype codes that a row of the array takes in this kind, raw bits among them."""
    return RAW_FORMATS if kind == Kind.RAW else formats_of(kind, cfg)


def bytes_of(kind: int, dtype: int) -> int:
    """Bytes of what a row takes in a beat; of a stationary operand with kind SPARSE."""
    if kind in _SCALES:
        return 2 if dtype == _FP4 else 4
    if kind == Kind.PAIR:
        return 2
    return {0: 4, 1: 2, 2: 2, 3: 4}.get(dtype, 1)


class WeightKinds:
    """What each row of the array holds, as loads leave it: kind, the E4M3 among its formats, columns of that kind.

    Of each row group: whether its load waits for a matmul, and whether a transpose has cleared what a load moves on.
    """

    def __init__(self, rows: int, cols: int, groups: int = 1):
        self.cols = cols
        self._size = rows // groups
        self._pending = np.zeros(groups, np.bool_)
        self._cleared = np.zeros(groups, np.bool_)
        self._kinds = np.full(rows, -1)
        self._eights = np.zeros(rows, np.int64)
        self._columns = np.full(rows, cols)

    @staticmethod
    def _rows(f: Mapping[str, int]) -> slice:
        return slice(f["src0_partition_start"], f["src0_partition_start"] + f["src0_partition_count"])

    @staticmethod
    def _of(f: Mapping[str, int]) -> tuple[int, int]:
        kind = Kind.HIGH if f["kind"] == Kind.LOW else f["kind"]
        return int(kind) + 8 * f.get("sparsity", 0), f["src0_dtype"] if f["src0_dtype"] in (4, 5) else 0

    def _groups(self, f: Mapping[str, int]) -> slice:
        """Row groups of the tile that src0 lies in."""
        each = len(self._pending) >> f.get("tile", 0)
        first = f["src0_partition_start"] // (each * self._size) * each
        return slice(first, first + each)

    def issue(self, f: Mapping[str, int]) -> None:
        """An instruction of the tensor queue issues."""
        if f["opcode"] == Opcode.LOAD_STATIONARY:
            self.load(f)
        elif f["opcode"] == Opcode.MULTIPLY_MOVING:
            self._pending[self._groups(f)] = False
        elif f["opcode"] == Opcode.TENSOR_TRANSPOSE:
            self._cleared[self._groups(f)] = True

    def taken(self, f: Mapping[str, int]) -> bool:
        """Whether a TENSOR_TRANSPOSE finds no load that waits for a matmul."""
        return not self._pending[self._groups(f)].any()

    def load(self, f: Mapping[str, int]) -> None:
        """A LOAD_STATIONARY issues: what was there moves east."""
        mine = self._groups(f)
        for group in np.flatnonzero(self._cleared[mine]) + mine.start:
            rows = slice(group * self._size, (group + 1) * self._size)
            self._kinds[rows], self._eights[rows], self._columns[rows] = -1, 0, self.cols
        self._cleared[mine], self._pending[mine] = False, True
        width = f["src0_count0"] * f["src0_count1"] * f["src0_count2"] * f["src0_count3"]
        kind, eight = self._of(f)
        for row in range(*self._rows(f).indices(len(self._kinds))):
            goes_on = self._kinds[row] in (-1, kind) and not {eight, self._eights[row]} >= {4, 5}
            self._columns[row] = min(self.cols, width + (self._columns[row] if goes_on else 0))
            self._eights[row] = eight or (self._eights[row] if goes_on else 0)
            self._kinds[row] = kind

    def agree(self, f: Mapping[str, int]) -> bool:
        """Whether a MULTIPLY_MOVING may use the rows and columns that it names."""
        kind, eight = self._of(f)
        rows = self._rows(f)
        kinds, eights, columns = self._kinds[rows], self._eights[rows], self._columns[rows]
        fits = (kinds == kind) & (columns >= f["dst_partition_count"])
        return bool(np.all((kinds == -1) | fits)) and not (eight and np.any(eights == 9 - eight))
