"""The modules of the same name in every folder of sim/systems."""

import importlib
import importlib.util
import pkgutil
from types import ModuleType

__all__ = ["modules"]


def modules(pattern: str) -> list[ModuleType]:
    """All modules that a pattern as in "room.*.part" names, in the order of folders; a folder without one is passed by.

    sim/build/sources.py follows such a pattern in a string, so what depends on the pattern depends on the modules.
    """
    room, _, part = pattern.partition(".*.")
    folders = sorted(m.name for m in pkgutil.iter_modules(importlib.import_module(room).__path__) if m.ispkg)
    names = (f"{room}.{folder}.{part}" for folder in folders)
    return [importlib.import_module(name) for name in names if importlib.util.find_spec(name)]
