"""Groups of elements that a row of the array takes in a beat: sizes, formats, scales, and what a load leaves behind.

Written from docs/isa.md; shares encodings with the hardware, no code and no table.
"""

from collections.abc import Mapping

import numpy as np

from rtl.contract.config import Config
from rtl.contract.kinds import Kind

__all__ = ["WeightKinds", "bytes_of", "formats_of", "scale_format_of", "scale_rows_of", "scaled"]

_EIGHTS, _FP4 = (4, 5, 6), 7  # dtype codes: E4M3FN, E4M3, E5M2; E2M1
_SCALES = {Kind.QUAD: (8, 8), Kind.QUAD_E4M3: (4, 4)}  # format of scales, rows of a block


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
    """Dtype codes that an operand of this kind may have."""
    if kind == Kind.ONE:
        return (1, 2, 3, *_EIGHTS)
    if kind in (Kind.HIGH, Kind.LOW):
        return (0,)
    if not cfg.tensor.mx or (kind == Kind.QUAD_E4M3 and not cfg.tensor.nvfp4):
        return ()
    if kind == Kind.PAIR:
        return _EIGHTS
    return (4, 6, _FP4) if kind in _SCALES else ()


def bytes_of(kind: int, dtype: int) -> int:
    """Bytes of what a row takes in a beat."""
    if kind in _SCALES:
        return 2 if dtype == _FP4 else 4
    if kind == Kind.PAIR:
        return 2
    return {0: 4, 1: 2, 2: 2, 3: 4}.get(dtype, 1)


class WeightKinds:
    """Kind and FP8 family of the weights of each row of the array, as loads leave them."""

    def __init__(self, rows: int):
        self._kinds = np.full(rows, -1)
        self._eights = np.zeros(rows, np.int64)

    @staticmethod
    def _rows(f: Mapping[str, int]) -> slice:
        return slice(f["src0_partition_start"], f["src0_partition_start"] + f["src0_partition_count"])

    @staticmethod
    def _kind(f: Mapping[str, int]) -> int:
        return int(Kind.HIGH if f["kind"] == Kind.LOW else f["kind"])

    def load(self, f: Mapping[str, int]) -> None:
        """A LOAD_STATIONARY issues."""
        self._kinds[self._rows(f)] = self._kind(f)
        self._eights[self._rows(f)] = f["src0_dtype"] if f["src0_dtype"] in (4, 5) else 0

    def agree(self, f: Mapping[str, int]) -> bool:
        """Whether a MULTIPLY_MOVING may use the rows that it names."""
        kinds, eights = self._kinds[self._rows(f)], self._eights[self._rows(f)]
        other = {4: 5, 5: 4}.get(f["src0_dtype"], -1)
        return bool(np.all((kinds == -1) | (kinds == self._kind(f))) and not np.any(eights == other))
