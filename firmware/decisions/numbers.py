"""Numbers that only a run knows: registers, what is reckoned with them, conditions. A sequencer reckons the same."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from operator import index as index_of
from typing import Any, NoReturn

from firmware.errors import KernelError
from rtl.contract.sequence import SeqOp

__all__ = ["Condition", "Number", "Register", "greatest", "least", "parts_of", "value_of"]

LEAST, MOST = -(1 << 31), (1 << 31) - 1
_REFUSED = "a register has no value while a kernel is said: "

_FUNCTIONS: dict[SeqOp, Callable[[int, int], int]] = {
    SeqOp.ADD: lambda a, b: a + b,
    SeqOp.SUBTRACT: lambda a, b: a - b,
    SeqOp.MULTIPLY: lambda a, b: a * b,
    SeqOp.SHIFT_LEFT: lambda a, b: a << (b & 31),
    SeqOp.SHIFT_RIGHT: lambda a, b: a >> (b & 31),
    SeqOp.AND: lambda a, b: a & b,
    SeqOp.MIN: min,
    SeqOp.MAX: max,
    SeqOp.EQUAL: lambda a, b: int(a == b),
    SeqOp.LESS: lambda a, b: int(a < b),
}


def _refuse(what: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *_: object) -> NoReturn:
        raise KernelError(f"{_REFUSED}{what}")

    return refuse


class Number:
    """`op` of `a` and `b`, each a Number or an int; `low` and `high` are its bounds, if not given those of the ends.

    Errors: KernelError if it need not fit in 32 bits.
    """

    def __init__(self, op: SeqOp, a: "Number | int", b: "Number | int", bounds: tuple[int, int] | None = None):
        self.op, self.a, self.b = op, a, b
        ends = [_FUNCTIONS[op](x, y) for x, y in product(_bounds(a), _bounds(b))]
        self.low, self.high = bounds or (min(ends), max(ends))
        for low, high in (_bounds(a), _bounds(b), (self.low, self.high)):
            if not LEAST <= low <= high <= MOST:
                raise KernelError(f"a number from {low} to {high} does not fit a register of 32 bits")

    def __add__(self, other: Any) -> "Number":
        return _number(SeqOp.ADD, self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Number":
        return _number(SeqOp.SUBTRACT, self, other)

    def __rsub__(self, other: Any) -> "Number":
        return _number(SeqOp.SUBTRACT, other, self)

    def __neg__(self) -> "Number":
        return Number(SeqOp.SUBTRACT, 0, self)

    def __mul__(self, other: Any) -> "Number":
        return _number(SeqOp.MULTIPLY, self, other)

    __rmul__ = __mul__

    def __lshift__(self, other: Any) -> "Number":
        return _number(SeqOp.SHIFT_LEFT, self, _shift(other))

    def __rshift__(self, other: Any) -> "Number":
        return _number(SeqOp.SHIFT_RIGHT, self, _shift(other))

    def __floordiv__(self, other: Any) -> "Number":
        return self >> _power(other)

    def __mod__(self, other: Any) -> "Number":
        mask = (1 << _power(other)) - 1
        return Number(SeqOp.AND, self, mask, (0, mask))

    def at_most(self, other: Any) -> Any:
        """The less of the two."""
        return _number(SeqOp.MIN, self, other, lambda: other.at_most(self))

    def at_least(self, other: Any) -> Any:
        """The greater of the two."""
        return _number(SeqOp.MAX, self, other, lambda: other.at_least(self))

    def __lt__(self, other: Any) -> "Condition":
        return _condition(SeqOp.LESS, self, other)

    def __ge__(self, other: Any) -> "Condition":
        return _condition(SeqOp.LESS, self, other, holds_if=False)

    def __gt__(self, other: Any) -> "Condition":
        if isinstance(other, int) and other < MOST:  # one operation, where a constant in front would take two
            return _condition(SeqOp.LESS, self, other + 1, holds_if=False)
        return _condition(SeqOp.LESS, other, self)

    def __le__(self, other: Any) -> "Condition":
        if isinstance(other, int) and other < MOST:
            return _condition(SeqOp.LESS, self, other + 1)
        return _condition(SeqOp.LESS, other, self, holds_if=False)

    def __eq__(self, other: Any) -> "Condition":  # type: ignore[override]
        return _condition(SeqOp.EQUAL, self, other)

    def __ne__(self, other: Any) -> "Condition":  # type: ignore[override]
        return _condition(SeqOp.EQUAL, self, other, holds_if=False)

    __hash__ = object.__hash__
    __bool__ = _refuse("a block is left out by `with k.if_(n != 0):`")
    __int__ = __index__ = _refuse("k.loop and k.if_ take it as it is, and so does an axis of a tensor in HBM, x[n]")
    __float__ = __truediv__ = __rtruediv__ = _refuse("whole numbers only are reckoned with it")
    __iter__ = __len__ = _refuse("a loop of so many turns is `with k.loop(n) as i:`")
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __pow__ = __rpow__ = __abs__ = __pos__ = _refuse(
        "it is reckoned with by + - * // % << >>, at_most and at_least, and compared"
    )
    __rfloordiv__ = __rmod__ = __rlshift__ = __rrshift__ = __divmod__ = __rdivmod__ = __abs__

    def __repr__(self) -> str:
        return f"a number from {self.low} to {self.high}"


class Register(Number):
    """The 32-bit word at byte `offset` of tensor `tensor` of kernel `owner`, when a queue comes to it: 0 to `high`."""

    def __init__(self, index: int, tensor: str, offset: int, high: int, place: str, owner: object = None):
        self.index, self.tensor, self.offset, self.place, self.owner = index, tensor, offset, place, owner
        self.low, self.high = 0, high

    def __repr__(self) -> str:
        return f"the register from {self.tensor}"


@dataclass(frozen=True, eq=False, slots=True)
class Condition:
    """Whether `number` is not 0; with `holds_if` False, whether it is."""

    number: Number
    holds_if: bool = True

    __bool__ = _refuse("a block is left out by `with k.if_(n < 3):`")
    __and__ = __rand__ = __or__ = __ror__ = _refuse("where two conditions have to hold a block is in a block")

    def __invert__(self) -> "Condition":
        return Condition(self.number, not self.holds_if)

    def holds(self, registers: Mapping[int, int]) -> bool:
        """With these values of registers, by index."""
        return (value_of(self.number, registers) != 0) == self.holds_if


def _bounds(value: Number | int) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value.low, value.high)


def _is_later(value: Any) -> bool:
    """Whether a loop's turns settle it (firmware.loops.lazy)."""
    return hasattr(value, "_now")


def _whole(value: Any) -> Number | int:
    """An operand. KernelError if it is none."""
    if isinstance(value, Number):
        return value
    try:
        return index_of(value)
    except TypeError:
        raise KernelError(f"a register is reckoned with whole numbers and registers, not with {value!r}") from None


def _power(other: Any) -> int:
    """The logarithm of a power of two."""
    value = 0 if _is_later(other) else _whole(other)
    if isinstance(value, Number) or value < 1 or value & (value - 1):
        raise KernelError(f"a register is divided by a power of two, which {other!r} is not")
    return value.bit_length() - 1


def _shift(by: Any) -> Any:
    if not _is_later(by):
        low, high = _bounds(_whole(by))
        if not 0 <= low <= high < 32:
            raise KernelError(f"a register is shifted by 0 to 31 bits, not by {by!r}")
    return by


def _number(op: SeqOp, a: Any, b: Any, later: Callable[[], Any] = lambda: NotImplemented) -> Any:
    """NotImplemented, or what `later` gives, for what turns of a loop settle: it is asked in its turn."""
    if _is_later(a) or _is_later(b):
        return later()
    return Number(op, _whole(a), _whole(b))


def _condition(op: SeqOp, a: Any, b: Any, *, holds_if: bool = True) -> Any:
    if _is_later(a) or _is_later(b):
        return NotImplemented
    return Condition(Number(op, _whole(a), _whole(b), (0, 1)), holds_if)


def value_of(number: Number | int, registers: Mapping[int, int]) -> int:
    """What it is with these values of registers, by index; sums wrap as those of a sequencer."""
    if isinstance(number, int):
        return number
    if isinstance(number, Register):
        return registers[number.index]
    value = _FUNCTIONS[number.op](value_of(number.a, registers), value_of(number.b, registers))
    return (value - LEAST) % (1 << 32) + LEAST


def least(a: Number | int, b: Number | int) -> Number | int:
    """The less of the two; a number of the run if one is."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else Number(SeqOp.MIN, a, b)


def greatest(a: Number | int, b: Number | int) -> Number | int:
    """The greater of the two; a number of the run if one is."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else Number(SeqOp.MAX, a, b)


def parts_of(number: Number | int) -> Iterator[Register]:
    """Registers that it is reckoned from."""
    if isinstance(number, Register):
        yield number
    elif isinstance(number, Number):
        yield from parts_of(number.a)
        yield from parts_of(number.b)
