"""Golden array of every kind: chains of dot products against exact integers, FP32 halves, weights over time."""

from fractions import Fraction

import numpy as np
import pytest

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.formats import FORMATS
from rtl.contract.kinds import FP4_CODES, Kind
from rtl.contract.memmap import Space
from verif.golden import mx
from verif.golden.array_kinds import KindsState, halves, operand_columns
from verif.golden.memory import Memory

ROWS = 8
TABLE = sum(code << 8 * i for i, code in enumerate(FP4_CODES))
CODES = ("e4m3fn", "e5m2", "e2m1")
PAIRINGS = [
    (kind, left, right)
    for kind in (Kind.PAIR, Kind.QUAD, Kind.QUAD_E4M3)
    for left in CODES
    for right in CODES
    if kind != Kind.PAIR or "e2m1" not in (left, right)  # FP4 comes by four
]


def pattern(dtype: str, columns: int, offset: int = 0, count: int = ROWS) -> AccessPattern:
    return AccessPattern(
        space=Space.SBUF, dtype=FORMATS[dtype].code, partition_start=0, partition_count=count, offset=offset,
        dims=((1, columns),),
    )  # fmt: skip


def chain(kind: Kind, left: np.ndarray, right: np.ndarray, sl: np.ndarray, sr: np.ndarray, formats: tuple[str, str]):
    """Sums [M, N] of codes [K, M, n] and [K, N, n] with scales [K, M] and [K, N], one element after the other."""
    m, n = left.shape[1], right.shape[1]
    acc = np.zeros(m * n, np.uint32)
    scale = "e4m3fn" if kind == Kind.QUAD_E4M3 else "e8m0"
    for k in range(len(left)):
        a, b = np.repeat(left[k], n, axis=0), np.tile(right[k], (m, 1))
        acc = mx.mx_dot(a, b, np.repeat(sl[k], n), np.tile(sr[k], m), acc, *formats, scale)
    return acc.reshape(m, n)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("kind", "left", "right"), PAIRINGS)
def test_a_chain_is_that_of_exact_integers(kind: Kind, left: str, right: str, special: bool) -> None:
    rng = np.random.default_rng([kind, ord(left[1]), ord(right[1]), special])
    n = 2 if kind == Kind.PAIR else 4
    m, columns = 5, 7
    sbuf = Memory(ROWS, 256)
    sides = []
    for i, (fmt, width) in enumerate(((left, m), (right, columns))):
        codes = rng.integers(0, 16 if fmt == "e2m1" else 256, (ROWS, width, n), np.uint8)
        if not special and fmt != "e2m1":
            codes = codes & 0xBF  # neither NaN nor infinity
        if fmt == "e2m1":
            packed = codes[..., 0] | codes[..., 1].astype(np.uint16) << 4
            packed = packed | codes[..., 2].astype(np.uint16) << 8 | codes[..., 3].astype(np.uint16) << 12
            lying = packed.astype("<u2")[..., None].view(np.uint8)
            codes, real = np.array(FP4_CODES, np.uint8)[codes], "e4m3fn"
        else:
            lying, real = codes, fmt
        sbuf.bytes[:, 64 * i : 64 * i + lying[0].size] = lying.reshape(ROWS, -1)
        scales = np.full((ROWS, width), 127, np.uint8)
        if kind != Kind.PAIR:
            rows = 8 if kind == Kind.QUAD else 4
            of_blocks = rng.integers(0, 256, (ROWS // rows, width), np.uint8)
            if not special:
                of_blocks = of_blocks % 120 if kind == Kind.QUAD_E4M3 else 110 + of_blocks % 40
            slot = i * (ROWS // rows)
            sbuf.bytes[slot : slot + len(of_blocks), 128 : 128 + width] = of_blocks
            scales = np.repeat(of_blocks, rows, axis=0)
        where = AccessPattern(
            space=Space.SBUF, dtype=8, partition_start=i * (1 if kind == Kind.QUAD else 2), partition_count=1,
            offset=128, dims=((1, width),),
        )  # fmt: skip
        sides.append((pattern(fmt, width, 64 * i), where, codes, scales, real))
    state = KindsState(ROWS, m)
    state.load(operand_columns(sbuf, sides[0][0], kind, sides[0][1], TABLE), 0)
    got = state.matmul(operand_columns(sbuf, sides[1][0], kind, sides[1][1], TABLE), 0)
    expected = chain(kind, sides[0][2], sides[1][2], sides[0][3], sides[1][3], (sides[0][4], sides[1][4]))
    assert np.array_equal(got, expected)


def test_columns_of_two_formats_lie_side_by_side() -> None:
    rng = np.random.default_rng(8)
    sbuf = Memory(ROWS, 64)
    sbuf.bytes[:] = rng.integers(0, 256, sbuf.bytes.shape, np.uint8) & 0xBF
    state = KindsState(ROWS, 4)
    columns = [operand_columns(sbuf, pattern(fmt, 2, 8 * i), Kind.PAIR) for i, fmt in enumerate(("e4m3fn", "e5m2"))]
    state.load(columns[0], 0)
    state.load(columns[1], 0)
    moving = operand_columns(sbuf, pattern("e5m2", 3, 32), Kind.PAIR)
    unit = np.full((ROWS, 3), 127, np.uint8)
    got = state.matmul(moving, 0)
    for at, one in ((0, columns[1]), (2, columns[0])):
        expected = chain(Kind.PAIR, one.codes, moving.codes, unit[:, :2], unit, (one.fmt, "e5m2"))
        assert np.array_equal(got[at : at + 2], expected)


def test_halves_of_fp32() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 1 << 32, 4000, np.uint32)
    codes[:4] = [1, 0x7F7FFFFF, 0x00800000, 0x3F800800]
    x = codes.view(np.float32)
    x = x[np.isfinite(x)]
    high, low = halves(x)
    for value, h, rest in zip(x.tolist(), high.tolist(), low.tolist(), strict=True):
        if np.isinf(h):
            assert rest == 0 and abs(value) >= 2.0**128 - 2.0**115
            continue
        assert Fraction(h) + Fraction(rest) == Fraction(value)
        assert h == 0 or float(np.frexp(h)[0] * 4096).is_integer()
        assert value == 0 or abs(Fraction(rest)) <= Fraction(2) ** (int(np.frexp(value)[1]) - 13)
    assert [float(v[0]) for v in halves(np.array([np.inf], np.float32))] == [np.inf, 0.0]


def test_weights_stay_until_a_matmul_takes_newer_ones() -> None:
    sbuf = Memory(ROWS, 64)
    one, two = (np.array([v], np.float32).view(np.uint32)[0] >> 16 for v in (1.0, 2.0))
    sbuf.bytes[:, :4] = np.array([one, two], "<u2").view(np.uint8)
    first, second = (operand_columns(sbuf, pattern("bf16", 1, at), Kind.ONE) for at in (0, 2))
    state = KindsState(ROWS, 2)
    state.load(first, 0)
    assert state.matmul(first, 0).view(np.float32)[:, 0].tolist() == [8.0, 0.0]
    state.load(second, 0)  # the first column moves east
    assert state.matmul(first, 0).view(np.float32)[:, 0].tolist() == [16.0, 8.0]
