"""Arguments of the kernel language are what they are said to be: a wrong type is one sentence, not a traceback."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from firmware.loops.lazy import has_lazy, now
from firmware.views import HbmView, KernelError, Tile, TileView

__all__ = ["at_once", "checked"]

ClassT = TypeVar("ClassT", bound=type)
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_AT_ONCE = "_at_once"
_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    TileView: "a view of a tile, as in tile[:, :]",
    HbmView: "a view of a tensor in HBM",
    np.ndarray: "a NumPy array",
    type(None): "None",
}
_KINDS: dict[Any, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
    bool: (bool, np.bool_),
}


def at_once(*, lazy: bool = False) -> Callable[[FunctionT], FunctionT]:
    """A statement that is executed where it is said, in a loop's body once; `lazy`: its arguments may be so."""

    def mark(method: FunctionT) -> FunctionT:
        setattr(method, _AT_ONCE, lazy)
        return method

    return mark


def checked(cls: ClassT) -> ClassT:
    """A class whose public methods refuse arguments that are not of their annotated types. KernelError.

    In a loop's body they are recorded, unless they are `at_once`.
    """
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and (not name.startswith("_") or name == "__init__"):
            setattr(cls, name, _checked(method, cls.__name__ if name == "__init__" else name))
    return cls


def _checked(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    right = _right(method, name)
    lazy = getattr(method, _AT_ONCE, None)

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = _recorder_of(args[0]) if args else None
        if recorder is None or not recorder.used:
            return right(*args, **kwargs)
        if recorder.recording and lazy is None:
            return recorder.record(call, name, args, kwargs)
        if not lazy and (has_lazy(args) or has_lazy(kwargs)):
            args, kwargs = now(args), now(kwargs)
        if not recorder.recording:
            return right(*args, **kwargs)
        with recorder.paused():
            return right(*args, **kwargs)

    return call


def _recorder_of(owner: Any) -> Any:
    """Of a kernel, or of the one that an engine belongs to."""
    return getattr(getattr(owner, "_k", owner), "_recorder", None)


def _right(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method with its arguments checked."""
    signature = inspect.signature(method)
    rest = {p.name for p in signature.parameters.values() if p.kind == p.VAR_POSITIONAL}
    hints: dict[str, Any] = {}

    def call(*args: Any, **kwargs: Any) -> Any:
        if not hints:  # only now every module is there
            hints.update(_hints(method), **{"return": None})
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise KernelError(f"{name}: {error}; it is written {name}{_shown(signature)}") from None
        for key, value in given.items():
            wanted = hints.get(key)
            if wanted is None:
                continue
            for one in value if key in rest else (value,):
                if not _fits(one, wanted):
                    raise KernelError(f"{name}: {key} must be {_words(wanted)}, not {_what(one)}")
        return method(*args, **kwargs)

    return call


def _hints(method: Callable[..., Any]) -> dict[str, Any]:
    """Annotations that can be looked up; of names that only a type checker knows there is nothing to check."""
    try:
        return get_type_hints(method)
    except NameError:
        return {}


def _shown(signature: inspect.Signature) -> str:
    names = [str(p.replace(annotation=p.empty)) for p in signature.parameters.values() if p.name != "self"]
    return f"({', '.join(names)})"


def _fits(value: Any, wanted: Any) -> bool:
    if wanted is Any or isinstance(wanted, TypeVar):
        return True
    origin = get_origin(wanted)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(wanted))
    if wanted in _KINDS:
        return isinstance(value, _KINDS[wanted]) and (wanted is bool or not isinstance(value, (bool, np.bool_)))
    if wanted in (TileView, HbmView, str):
        return isinstance(value, wanted)
    if origin is None:
        return not inspect.isclass(wanted) or isinstance(value, wanted)
    if origin is tuple:
        inner = get_args(wanted)
        if not isinstance(value, tuple):
            return False
        kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return len(kinds) == len(value) and all(map(_fits, value, kinds))
    if origin in (Sequence, Iterable):
        each = get_args(wanted)[0]
        if not isinstance(value, Iterable) or isinstance(value, str):
            return False
        return each is Any or isinstance(each, TypeVar) or all(_fits(one, each) for one in value)
    return not inspect.isclass(origin) or isinstance(value, origin)


def _words(wanted: Any) -> str:
    origin = get_origin(wanted)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_words(one) for one in get_args(wanted)))
    if wanted in _WORDS:
        return _WORDS[wanted]
    if origin is tuple:
        inner = get_args(wanted)
        many = "" if inner[1:] == (...,) else f" of {len(inner)}"
        return f"a tuple{many}, each {_words(inner[0])}"
    if origin in (Sequence, Iterable):
        return f"several, each {_words(get_args(wanted)[0])}"
    return f"a {getattr(wanted, '__name__', wanted)}"


def _what(value: Any) -> str:
    if isinstance(value, Tile):
        return f"the tile {value.name} itself; {value.name}[:, :] is all of it"
    if isinstance(value, (TileView, HbmView)):
        return f"a view of {value.tile.name if isinstance(value, TileView) else value.tensor.name}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
