"""Integer operations whose result is an element wide. Source: RVV 1.0, sections 11.1 to 11.13."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["INTEGER_OPERATIONS", "MULTIPLY_ADD", "Operation"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """`compute(a, b)`: a of vs2, b of vs1, x or an immediate; `signs` of both, u or i; results wrap when written.

    `dest` and `vs2`: width of those groups in SEW. `amount`: an immediate is unsigned.
    """

    compute: Callable[..., Any]
    signs: str = "uu"
    dest: int = 1
    vs2: int = 1
    amount: bool = False


def _bits(a: Array) -> int:
    return 8 * a.dtype.itemsize


def _amount(b: Array, bits: int, kind: np.dtype) -> Array:
    return (b & b.dtype.type(bits - 1)).astype(kind)


def _left(a: Array, b: Array) -> Array:
    return a << _amount(b, _bits(a), a.dtype)


def _right(a: Array, b: Array) -> Array:
    return a >> _amount(b, _bits(a), a.dtype)


def _divide(a: Array, b: Array) -> Array:
    """Towards zero; by 0: all ones. The quotient -2^(SEW-1) / -1 wraps."""
    n, d = a.astype(np.int64), np.int64(b) if b.ndim == 0 else b.astype(np.int64)
    safe = np.where(d == 0, 1, d)
    return np.where(d == 0, -1, (n - np.fmod(n, safe)) // safe)


def _remainder(a: Array, b: Array) -> Array:
    """With the sign of the dividend; by 0: the dividend."""
    n, d = a.astype(np.int64), np.int64(b) if b.ndim == 0 else b.astype(np.int64)
    return np.where(d == 0, n, np.fmod(n, np.where(d == 0, 1, d)))


def _high(kind: type[np.integer]) -> Callable[[Array, Array], Array]:
    """The upper half of a product."""
    return lambda a, b: np.multiply(a, b, dtype=kind, casting="unsafe") >> kind(_bits(a))


def _wide(ufunc: np.ufunc) -> Callable[[Array, Array], Array]:
    """Of numbers that fit 64 bits with any sign."""
    return lambda a, b: ufunc(a, b, dtype=np.int64)


def _widening() -> dict[str, Operation]:
    """vwadd and the like, and those with a wide first operand."""
    found = {}
    for name, ufunc in (("add", np.add), ("sub", np.subtract)):
        for sign, letter in (("i", ""), ("u", "u")):
            found[f"vw{name}{letter}"] = Operation(_wide(ufunc), 2 * sign, dest=2)
            found[f"vw{name}{letter}.w"] = Operation(_wide(ufunc), 2 * sign, dest=2, vs2=2)
    for name, signs in (("vwmulu", "uu"), ("vwmulsu", "iu"), ("vwmul", "ii")):
        found[name] = Operation(_wide(np.multiply), signs, dest=2)
    return found


INTEGER_OPERATIONS: dict[str, Operation] = {
    "vadd": Operation(np.add),
    "vsub": Operation(np.subtract),
    "vrsub": Operation(lambda a, b: b - a),
    "vminu": Operation(np.minimum),
    "vmin": Operation(np.minimum, "ii"),
    "vmaxu": Operation(np.maximum),
    "vmax": Operation(np.maximum, "ii"),
    "vand": Operation(np.bitwise_and),
    "vor": Operation(np.bitwise_or),
    "vxor": Operation(np.bitwise_xor),
    "vsll": Operation(_left, amount=True),
    "vsrl": Operation(_right, amount=True),
    "vsra": Operation(_right, "iu", amount=True),
    "vnsrl": Operation(_right, vs2=2, amount=True),
    "vnsra": Operation(_right, "iu", vs2=2, amount=True),
    "vmul": Operation(np.multiply),
    "vmulh": Operation(_high(np.int64), "ii"),
    "vmulhu": Operation(_high(np.uint64)),
    "vmulhsu": Operation(_high(np.int64), "iu"),
    "vdivu": Operation(_divide),
    "vdiv": Operation(_divide, "ii"),
    "vremu": Operation(_remainder),
    "vrem": Operation(_remainder, "ii"),
    **_widening(),
}

MULTIPLY_ADD: dict[str, Operation] = {
    "vmacc": Operation(lambda a, b, d: b * a + d),
    "vnmsac": Operation(lambda a, b, d: d - b * a),
    "vmadd": Operation(lambda a, b, d: b * d + a),
    "vnmsub": Operation(lambda a, b, d: a - b * d),
    "vwmaccu": Operation(lambda a, b, d: _wide(np.multiply)(a, b) + d, dest=2),
    "vwmacc": Operation(lambda a, b, d: _wide(np.multiply)(a, b) + d, "ii", dest=2),
    "vwmaccsu": Operation(lambda a, b, d: _wide(np.multiply)(a, b) + d, "ui", dest=2),
    "vwmaccus": Operation(lambda a, b, d: _wide(np.multiply)(a, b) + d, "iu", dest=2),
}
"""Third argument: what vd holds, unsigned. Source: sections 11.13 and 11.14."""
