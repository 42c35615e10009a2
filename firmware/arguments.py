"""Arguments of the kernel language are what they are said to be: a wrong type is one sentence, not a traceback."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from firmware.views import HbmView, KernelError, Tile, TileView

__all__ = ["checked"]

ClassT = TypeVar("ClassT", bound=type)

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


def checked(cls: ClassT) -> ClassT:
    """A class whose public methods refuse arguments that are not of their annotated types. KernelError."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and (not name.startswith("_") or name == "__init__"):
            setattr(cls, name, _checked(method, cls.__name__ if name == "__init__" else name))
    return cls


def _checked(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    signature = inspect.signature(method)
    rest = {p.name for p in signature.parameters.values() if p.kind == p.VAR_POSITIONAL}
    hints: dict[str, Any] = {}

    @wraps(method)
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
        return isinstance(value, Iterable) and not isinstance(value, str) and all(_fits(one, each) for one in value)
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
