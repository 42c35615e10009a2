"""What is mutated, and who must notice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rtl.contract.any_config import AnyConfig

__all__ = ["Unit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A top at one configuration, and the benches that check it there. `files`: whose cells are mutated (own.py)."""

    top: str
    benches: tuple[str, ...]
    cfg: AnyConfig
    options: Mapping[str, Any]
    files: frozenset[str] = frozenset()
