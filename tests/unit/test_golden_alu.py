"""Golden operators, reductions and reciprocal against exact fractions and plain Python."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rtl.contract.isa import REDUCTIONS, AluOp
from verif.golden.alu import alu, reduce
from verif.golden.reciprocal import reciprocal

NAN, INFINITY, MINUS, ONE = 0x7FC00000, 0x7F800000, 1 << 31, 0x3F800000
SPECIAL = [0, 1, 0x7FFFFF, 0x800000, ONE, ONE + 1, 0x7F7FFFFF, INFINITY, NAN, 0x7F800001]
SPECIAL += [c | MINUS for c in SPECIAL]


def exact(code: int) -> Fraction:
    """Value of a finite code."""
    field, fraction = code >> 23 & 255, code & 0x7FFFFF
    size = Fraction(fraction + (1 << 23) * bool(field)) * Fraction(2) ** (max(field, 1) - 150)
    return -size if code & MINUS else size


def nearest(value: Fraction) -> int:
    """The code nearest to a value that is not 0, ties to even, by counting in units of its last place."""
    size, unit = abs(value), Fraction(1, 2**149)
    exponent = 0
    while size >= unit * (1 << 24):
        unit, exponent = unit * 2, exponent + 1
    whole, rest = divmod(size, unit)
    whole += rest * 2 > unit or (rest * 2 == unit and whole % 2 == 1)
    code = int(whole) if exponent == 0 else (exponent << 23) + int(whole)
    return min(code, INFINITY) | (MINUS if value < 0 else 0)


def nan(code: int) -> bool:
    return code & ~MINUS > INFINITY


def key(code: int) -> int:
    """Order of all numbers, -0 below +0."""
    return -1 - (code & ~MINUS) if code & MINUS else code


def wild(count: int, seed: int) -> tuple[Any, Any]:
    """Pairs of codes: random, specials, numbers close to each other."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 1 << 32, (2, count), dtype=np.uint32)
    near = (
        x ^ rng.integers(0, 4, count).astype(np.uint32) ^ (rng.integers(0, 2, count).astype(np.uint32) << np.uint32(31))
    )
    y = np.where(rng.random(count) < 0.4, near, y).astype(np.uint32)
    corners = np.array(SPECIAL, np.uint32)
    a, b = (v.ravel() for v in np.meshgrid(corners, corners))
    return np.concatenate([x, a]), np.concatenate([y, b])


@pytest.mark.parametrize("op", [AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.SQUARE])
def test_arithmetic_is_one_rounding_of_the_exact_value(op: AluOp) -> None:
    x, y = wild(4000, int(op))
    out = alu(op, x, y)
    for a, b, seen in zip(x.tolist(), y.tolist(), out.tolist(), strict=True):
        second = a if op == AluOp.SQUARE else b
        if max(a & ~MINUS, second & ~MINUS) >= INFINITY:
            continue
        p, q = exact(a), exact(second)
        value = {AluOp.ADD: p + q, AluOp.SUBTRACT: p - q}.get(op, p * q)
        if value:
            assert seen == nearest(value), (hex(a), hex(b))
        else:
            assert seen & ~MINUS == 0


@pytest.mark.parametrize("op", [AluOp.MAX, AluOp.MIN, AluOp.ABSMAX, AluOp.ABSMIN, AluOp.RELU])
def test_extremes(op: AluOp) -> None:
    x, y = wild(4000, int(op))
    out = alu(op, x, y)
    for a, b, seen in zip(x.tolist(), y.tolist(), out.tolist(), strict=True):
        b = 0 if op == AluOp.RELU else b
        p, q = (a & ~MINUS, b & ~MINUS) if op in (AluOp.ABSMAX, AluOp.ABSMIN) else (a, b)
        pick = min if op in (AluOp.MIN, AluOp.ABSMIN) else max
        assert seen == (NAN if nan(a) or nan(b) else pick(p, q, key=key)), (hex(a), hex(b))


def test_comparisons_and_logic_give_one_or_zero() -> None:
    x, y = wild(3000, 9)
    rules = {
        AluOp.EQ: lambda p, q: p == q,
        AluOp.GT: lambda p, q: p > q,
        AluOp.GE: lambda p, q: p >= q,
        AluOp.LT: lambda p, q: p < q,
        AluOp.LE: lambda p, q: p <= q,
    }
    big = Fraction(2) ** 200

    def value(code: int) -> Fraction:
        return exact(code) if code & ~MINUS < INFINITY else -big if code & MINUS else big

    for op in (*rules, AluOp.NE, AluOp.AND, AluOp.OR, AluOp.XOR):
        for a, b, seen in zip(x.tolist(), y.tolist(), alu(op, x, y).tolist(), strict=True):
            true = a & ~MINUS != 0, b & ~MINUS != 0
            if op == AluOp.NE:
                want = nan(a) or nan(b) or value(a) != value(b)
            elif op in rules:
                want = not nan(a) and not nan(b) and rules[op](value(a), value(b))
            else:
                want = {AluOp.AND: all(true), AluOp.OR: any(true), AluOp.XOR: true[0] != true[1]}[op]
            assert seen == (ONE if want else 0), (op.name, hex(a), hex(b))


def test_one_operand_and_bits() -> None:
    x, y = wild(1000, 10)
    abs_ = [NAN if nan(c) else c & ~MINUS for c in x.tolist()]
    assert alu(AluOp.ABS, x, y).tolist() == abs_
    assert np.array_equal(alu(AluOp.BYPASS, x, y), x)
    assert np.array_equal(alu(AluOp.BYPASS, x, y, True), y)
    assert np.array_equal(alu(AluOp.SUBTRACT, x, y, True), alu(AluOp.SUBTRACT, y, x))
    for op, rule in {
        AluOp.BIT_AND: lambda a, b: a & b,
        AluOp.BIT_OR: lambda a, b: a | b,
        AluOp.BIT_XOR: lambda a, b: a ^ b,
        AluOp.BIT_NOT: lambda a, b: ~a & 0xFFFFFFFF,
        AluOp.SHIFT_LEFT: lambda a, b: a << b % 32 & 0xFFFFFFFF,
        AluOp.SHIFT_RIGHT: lambda a, b: a >> b % 32,
    }.items():
        assert alu(op, x, y).tolist() == [rule(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], op.name


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("length", [1, 3, 8, 9, 30])
def test_reduction_goes_through_eight_partial_results(op: AluOp, length: int) -> None:
    x, _ = wild(1, length)
    x = np.random.default_rng(length).normal(size=length).astype(np.float32).view(np.uint32)
    x[length // 2] |= np.uint32(MINUS)
    identity = {AluOp.MAX: INFINITY | MINUS, AluOp.MIN: INFINITY, AluOp.ABSMIN: INFINITY}.get(op, 0)

    def join(a: int, b: int) -> int:
        return int(alu(op, np.array([a], np.uint32), np.array([b], np.uint32))[0])

    p = [identity] * 8
    for i, code in enumerate(x.tolist()):
        p[i % 8] = join(p[i % 8], code)
    left = join(join(p[0], p[1]), join(p[2], p[3]))
    right = join(join(p[4], p[5]), join(p[6], p[7]))
    assert int(reduce(x[None], op)[0]) == join(left, right)


def test_reciprocal_is_one_rounding_of_the_exact_quotient() -> None:
    rng = np.random.default_rng(11)
    x = np.concatenate(
        [
            rng.integers(0, 1 << 32, 4000, dtype=np.uint32),
            np.arange(0x001FFF00, 0x00200100, dtype=np.uint32),  # 1/x around the largest number
            np.arange(0x7E7FFF80, 0x7E800080, dtype=np.uint32),  # and around the smallest normal one
            np.arange(ONE - 200, ONE + 200, dtype=np.uint32),
            rng.integers(0, 1 << 23, 500, dtype=np.uint32),
        ]
    )
    for code, seen in zip(x.tolist(), reciprocal(x).tolist(), strict=True):
        if nan(code):
            assert seen == NAN
        elif code & ~MINUS == INFINITY:
            assert seen == code & MINUS
        elif code & ~MINUS == 0:
            assert seen == INFINITY | code & MINUS
        else:
            assert seen == nearest(1 / exact(code)), hex(code)
