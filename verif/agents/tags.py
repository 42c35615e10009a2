"""Random tags of sparse operands, right ones and ones with a single mistake."""

import numpy as np
from numpy.typing import NDArray

from verif.golden.groups import kept_of, ratio_of

__all__ = ["random_tags"]


def random_tags(
    rng: np.random.Generator, sparsity: int, rows: int, columns: int, wrong: float = 0.4
) -> NDArray[np.uint16]:
    """Elements [rows, columns / 4, rounded up] of tags for whole buses; with probability `wrong` one tag is too large,
    repeats the one before it or changes places with it, where the pattern lets it. What is not used is noise."""
    kept = kept_of(sparsity)
    group = kept * ratio_of(sparsity)
    buses = rng.random((rows // kept, group, columns)).argsort(axis=1)[:, :kept]
    tags = np.sort(buses, axis=1).reshape(rows, columns)
    if rng.random() < wrong:
        row, column, what = int(rng.integers(rows)), int(rng.integers(columns)), int(rng.integers(3))
        if row % kept and what:
            here = tags[row, column]
            tags[row, column] = tags[row - 1, column]
            tags[row - 1, column] = here if what == 2 else tags[row - 1, column]
        elif group < 16:
            tags[row, column] = int(rng.integers(group, 16))
    whole = rng.integers(0, 16, (rows, -(-columns // 4) * 4))
    whole[:, :columns] = tags
    return (whole.reshape(rows, -1, 4) << 4 * np.arange(4)).sum(axis=2).astype(np.uint16)
