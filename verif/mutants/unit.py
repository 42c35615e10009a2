"""What is mutated, and who must notice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rtl.contract.config import load
from rtl.contract.switch_config import AnyConfig

__all__ = ["Unit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A top at one configuration, and the benches that check it there, the shortest first."""

    top: str
    benches: tuple[str, ...]
    cfg: AnyConfig = field(default_factory=lambda: load("tiny"))
    options: Mapping[str, Any] = field(default_factory=dict)
