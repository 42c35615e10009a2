"""What is known in the turns of a loop only: its index, what is reckoned with it, views that it cuts."""

import operator
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

from firmware.decisions.numbers import Condition, greatest, least
from firmware.errors import KernelError

__all__ = ["Index", "Lazy", "LazyView", "Result", "has_lazy", "later", "now"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def _instead(what: str, use: str) -> Callable[..., NoReturn]:
    def refuse(self: "Lazy", *_: Any) -> NoReturn:
        raise KernelError(f"{what} of {self!r}, which has a value in the turns of its loop only; {use}")

    return refuse


def _reckoned(function: Callable[..., Any]) -> Callable[..., "Lazy"]:
    return lambda *operands: Lazy(function, *operands)


def _turned(function: Callable[..., Any]) -> Callable[..., "Lazy"]:
    return lambda self, other: Lazy(function, other, self)


def _not(value: Any) -> Any:
    return ~value if isinstance(value, Condition) else not value


class Lazy:
    """`function` of operands that may be lazy themselves: a number, or whether something is so."""

    def __init__(self, function: Callable[..., Any], *operands: Any):
        self._function, self._operands = function, operands

    def _now(self) -> Any:
        return self._function(*(now(one) for one in self._operands))

    def __repr__(self) -> str:
        found = next((one for one in self._operands if isinstance(one, Lazy)), None)
        return f"an expression with {found!r}" if type(found) is Index else repr(found)

    __add__, __radd__ = _reckoned(operator.add), _turned(operator.add)
    __sub__, __rsub__ = _reckoned(operator.sub), _turned(operator.sub)
    __mul__, __rmul__ = _reckoned(operator.mul), _turned(operator.mul)
    __floordiv__, __rfloordiv__ = _reckoned(operator.floordiv), _turned(operator.floordiv)
    __mod__, __rmod__ = _reckoned(operator.mod), _turned(operator.mod)
    __lshift__, __rshift__ = _reckoned(operator.lshift), _reckoned(operator.rshift)
    __and__, __rand__ = _reckoned(operator.and_), _turned(operator.and_)
    __or__, __ror__ = _reckoned(operator.or_), _turned(operator.or_)
    __neg__ = _reckoned(operator.neg)
    __invert__ = _reckoned(_not)
    at_most, at_least = _reckoned(least), _reckoned(greatest)
    __lt__, __le__ = _reckoned(operator.lt), _reckoned(operator.le)
    __gt__, __ge__ = _reckoned(operator.gt), _reckoned(operator.ge)
    __eq__, __ne__ = _reckoned(operator.eq), _reckoned(operator.ne)  # type: ignore[assignment]
    __hash__ = object.__hash__

    __bool__ = _instead(
        "Python asks for the truth",
        "a block is left out by `with k.if_(...):`, and of two values k.pick((a, b), i < 3) is one",
    )
    __str__ = _instead("Python asks for the text", "what is made in a loop's body is made once, under one name")
    __truediv__ = __rtruediv__ = _instead("there is no half", "whole numbers are divided by //")
    __int__ = _instead("Python asks for the int", "k.loop takes it as it is, in indices and arguments")
    __float__ = _instead("Python asks for the float", "k.loop takes it as it is, in indices and arguments")
    __index__ = _instead(
        "Python asks for the int",
        "views take it as it is, of several tiles k.pick(tiles, i) is one, and a loop in a loop is another k.loop",
    )
    __iter__ = _instead("Python asks for the elements", "a loop in a loop is another k.loop")
    __len__ = _instead("Python asks for the length", "take that of what it is cut from")


class Index(Lazy):
    """Of the loop that a kernel says at `place`."""

    def __init__(self, place: str):
        super().__init__(lambda: None)
        self.value: int | None = None
        self._place = place

    def _now(self) -> int:
        if self.value is None:
            raise KernelError(
                f"{self!r} has a value in the turns of its loop only; tiles, tensors and how often a loop turns are "
                f"settled before the first one"
            )
        return self.value

    def __repr__(self) -> str:
        return f"the index of the loop at {self._place}"


class LazyView(Lazy):
    """`function` of operands: a view of a tile or a tensor, or anything else that is cut or called."""

    def __getitem__(self, index: Any) -> "LazyView":
        return LazyView(operator.getitem, self, index)

    def __getattr__(self, name: str) -> "LazyView":
        if name.startswith("_"):
            raise AttributeError(name)
        return LazyView(getattr, self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> "LazyView":
        return LazyView(_called, self, args, kwargs)

    def __repr__(self) -> str:
        return "a view or a result"


class Result(LazyView):
    """What the statement `name` at `place` returned when it was executed last."""

    def __init__(self, name: str, place: str):
        super().__init__(lambda: None)
        self._name, self._place, self._value = name, place, _NOTHING

    def _set(self, value: Any) -> None:
        self._value = value

    def _now(self) -> Any:
        if self._value is _NOTHING:
            raise KernelError(f"what {self._name} at {self._place} returns is used before it has been executed")
        return self._value


_NOTHING = object()


def _called(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def has_lazy(value: Any) -> bool:
    """Whether something in there is lazy."""
    if isinstance(value, Lazy):
        return True
    if isinstance(value, (tuple, list)):
        return any(map(has_lazy, value))
    if isinstance(value, dict):
        return any(map(has_lazy, value.values()))
    return isinstance(value, slice) and any(map(has_lazy, (value.start, value.stop, value.step)))


def now(value: Any) -> Any:
    """The same with what its lazy parts are in this turn; lists, tuples and dictionaries are new ones."""
    if isinstance(value, Lazy):
        return value._now()
    if isinstance(value, slice):
        return slice(now(value.start), now(value.stop), now(value.step))
    if type(value) in (tuple, list):
        return type(value)(map(now, value))
    if type(value) is dict:
        return {key: now(one) for key, one in value.items()}
    return value


def later(method: FunctionT) -> FunctionT:
    """A method of a view whose arguments may be lazy: what it gives is lazy then."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any(map(has_lazy, args)) or (kwargs and has_lazy(kwargs)):
            return LazyView(method, self, *args) if not kwargs else LazyView(_called, method, (self, *args), kwargs)
        return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]
