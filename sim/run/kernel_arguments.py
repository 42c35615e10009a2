"""Arguments of a kernel from a file of arrays and from texts."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firmware.npz import read_npz
from sim.errors import PlexusError

__all__ = ["arguments_of"]


def arguments_of(arrays: Path, params: Sequence[str]) -> dict[str, Any]:
    """By name: arrays of the file, those without axes as numbers, and name=value texts as what Python reads in them.
    Errors: PlexusError."""
    found: dict[str, Any] = {n: a if a.ndim else a.item() for n, a in read_npz(arrays).items()}
    for text in params:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise PlexusError(f"a parameter is written name=value, not {text!r}")
        if name in found:
            raise PlexusError(f"argument {name} is given twice")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found
