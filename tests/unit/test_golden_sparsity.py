"""Golden sparse operands: a chain over kept k one by one, tags that stand and fall, rows outside an operand."""

import numpy as np
import pytest

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.formats import FORMATS
from rtl.contract.memmap import Space
from rtl.contract.sparsity import PATTERNS, Sparsity
from verif.golden.array_kinds import KindsState, sparse_columns
from verif.golden.memory import Memory
from verif.golden.numeric import bf16_mac
from verif.golden.sparsity import slots_of, tags_of, tags_stand

ROWS = 8
every_pattern = pytest.mark.parametrize("p", list(PATTERNS.values()), ids=lambda p: p.name)


def place(dtype: str, columns: int, offset: int, start: int = 0, count: int = ROWS) -> AccessPattern:
    return AccessPattern(
        space=Space.SBUF, dtype=FORMATS[dtype].code, partition_start=start, partition_count=count, offset=offset,
        dims=((1, columns),),
    )  # fmt: skip


@every_pattern
def test_a_chain_adds_kept_products_in_ascending_k(p: Sparsity) -> None:
    """Weights and moving numbers by logical k, any bits; the sum goes over the kept k of a column alone."""
    rng = np.random.default_rng(p.code)
    m, n, depth = 5, 6, ROWS * p.ratio
    moving = rng.integers(0, 1 << 16, (depth, n)).astype(np.uint16)
    kept = np.stack([rng.permuted(np.arange(p.group))[: p.kept] for _ in range(m * ROWS // p.kept)])
    kept = np.sort(kept).reshape(ROWS // p.kept, m, p.kept)  # [bus, column, i-th kept]
    weights = rng.integers(0, 1 << 16, (ROWS, m)).astype(np.uint16)
    sbuf = Memory(ROWS, 512)
    sbuf.bytes[:, : 2 * m] = weights.astype("<u2").view(np.uint8).reshape(ROWS, -1)
    tags = kept.transpose(0, 2, 1).reshape(ROWS, m)
    packed = np.zeros((ROWS, 2), np.uint16)
    for column in range(m):
        packed[:, column // 4] |= (tags[:, column] << 4 * (column % 4)).astype(np.uint16)
    sbuf.bytes[:, 32:36] = packed.astype("<u2").view(np.uint8).reshape(ROWS, -1)
    size = 4 if p.ratio == 2 else 8
    for row, column in np.ndindex(ROWS, n):
        numbers = moving[p.ratio * row : p.ratio * (row + 1), column].astype("<u2").view(np.uint8)
        at = 64 + size * column
        sbuf.bytes[row, at : at + 2 * p.ratio] = numbers
    read = tags_of(sbuf, place("uint16", 2, 32), m)
    assert np.array_equal(read, tags) and tags_stand(read, p.code)
    state = KindsState(ROWS, m)
    state.load(sparse_columns(sbuf, place("bf16", m, 0), p.code, read), 0)
    got = state.matmul(sparse_columns(sbuf, place("bf16", n, 64), p.code), 0)
    for column, j in np.ndindex(m, n):
        acc = np.zeros(1, np.uint32)
        for row in range(ROWS):
            k = p.group * (row // p.kept) + int(kept[row // p.kept, column, row % p.kept])
            acc = bf16_mac(weights[row : row + 1, column], moving[k : k + 1, j], acc)
        assert got[column, j] == acc[0]


@every_pattern
def test_tags_ascend_below_the_group(p: Sparsity) -> None:
    right = np.tile(np.arange(p.kept), ROWS // p.kept)[:, None].astype(np.uint8)
    assert tags_stand(right, p.code)
    highest = right.copy()
    highest[-1] = p.group - 1
    assert tags_stand(highest, p.code)
    if p.group < 16:
        highest[-1] = p.group
        assert not tags_stand(highest, p.code)
    if p.kept > 1:
        right[p.kept + 1] = right[p.kept]
        assert not tags_stand(right, p.code)


@every_pattern
def test_slots_are_those_of_the_contract(p: Sparsity) -> None:
    for start in range(0, ROWS, p.kept):
        rows = np.arange(start, ROWS)
        tags = (rows % p.kept)[:, None].astype(np.uint8) + np.uint8(p.group - p.kept)
        want = [p.slot(int(row), int(tag)) for row, tag in zip(rows, tags[:, 0], strict=True)]
        assert slots_of(tags, start, p.code)[:, 0].tolist() == want
