"""The golden model of sparse beats against the definition: the kept products of a matrix with zeros, in order of k."""

import numpy as np
import pytest

from rtl.contract.kinds import Kind
from rtl.contract.sparsity import PATTERNS, Sparsity
from verif.agents.beat_codes import random_tags
from verif.golden.numeric import F32, canonical, fused
from verif.golden.tensor import TensorState
from verif.golden.tensor_cells import sparse_cells, sparse_rows

ROWS, COLS, BEATS = 16, 5, 7


def bf16(rng: np.random.Generator, shape: tuple[int, ...]) -> F32:
    """Values with eight significant bits."""
    return (rng.standard_normal(shape).astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def defined(w: F32, tags: np.ndarray, x: F32, pattern: Sparsity) -> np.ndarray:
    """Sums of weights [K, M] with tags and all logical numbers x [K * ratio, N], one fused multiply-add a row."""
    acc = np.zeros((w.shape[1], x.shape[1]), np.float32)
    for row in range(len(w)):
        for column in range(w.shape[1]):
            k = row // pattern.kept * pattern.group + tags[row, column]
            some = np.full(x.shape[1], w[row, column], np.float32)
            acc[column] = fused(some, x[k], acc[column])
    return canonical(acc)


@pytest.mark.parametrize(("name", "start"), [(n, s) for n, p in PATTERNS.items() for s in (0, 4, 6) if s % p.kept == 0])
def test_kept_products_in_order(name: str, start: int) -> None:
    pattern = PATTERNS[name]
    rng = np.random.default_rng(start)
    count = 8
    w = bf16(rng, (count, COLS))
    tags = np.stack([random_tags(np.random.default_rng(c + 9), [pattern], count) for c in range(COLS)], axis=1)
    tags %= pattern.group  # some of them are in no order
    x = bf16(rng, (count * pattern.ratio, BEATS))
    state = TensorState(ROWS, COLS)
    state.load(sparse_cells(w, tags, pattern, start), start)
    moving = sparse_rows(x.reshape(count, pattern.ratio, BEATS).transpose(0, 2, 1))
    sums = state.matmul(moving, start, kind=Kind.SPARSE)
    np.testing.assert_array_equal(sums, defined(w, tags, x, pattern))


@pytest.mark.parametrize("name", PATTERNS)
def test_slots_of_the_contract(name: str) -> None:
    """Golden and contract put a tag of its bus at the same number of the same row."""
    pattern = PATTERNS[name]
    for row in range(8):
        for tag in range(pattern.group):
            cell = sparse_cells(np.ones(1, np.float32), np.array([tag], np.uint8), pattern, row)[0]
            assert 4 * int(cell["source"]) + int(cell["place"]) == pattern.slot(row, tag)
