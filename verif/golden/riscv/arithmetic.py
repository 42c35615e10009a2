"""Arithmetic of RV32IM on unsigned 32-bit numbers: every operation as a function of two of them."""

from collections.abc import Callable

__all__ = ["OPERATIONS"]

WORD = 0xFFFFFFFF
SIGN = 1 << 31


def _signed(a: int) -> int:
    return (a ^ SIGN) - SIGN


def _div(a: int, b: int) -> int:
    """Towards zero; by 0: all ones; the overflow -2**31 / -1 gives -2**31."""
    if not b:
        return WORD
    n, d = _signed(a), _signed(b)
    q = abs(n) // abs(d)
    return (q if (n < 0) == (d < 0) else -q) & WORD


def _rem(a: int, b: int) -> int:
    """With the sign of the dividend; by 0: the dividend; the overflow gives 0."""
    if not b:
        return a
    n = _signed(a)
    r = abs(n) % abs(_signed(b))
    return (-r if n < 0 else r) & WORD


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b & WORD,
    "sub": lambda a, b: a - b & WORD,
    "sll": lambda a, b: a << (b & 31) & WORD,
    "slt": lambda a, b: 1 if a ^ SIGN < b ^ SIGN else 0,
    "sltu": lambda a, b: 1 if a < b else 0,
    "xor": lambda a, b: a ^ b,
    "srl": lambda a, b: a >> (b & 31),
    "sra": lambda a, b: _signed(a) >> (b & 31) & WORD,
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "mul": lambda a, b: a * b & WORD,
    "mulh": lambda a, b: _signed(a) * _signed(b) >> 32 & WORD,
    "mulhsu": lambda a, b: _signed(a) * b >> 32 & WORD,
    "mulhu": lambda a, b: a * b >> 32,
    "div": _div,
    "divu": lambda a, b: a // b if b else WORD,
    "rem": _rem,
    "remu": lambda a, b: a % b if b else a,
}
