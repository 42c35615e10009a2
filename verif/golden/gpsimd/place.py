"""Which core of an engine one is."""

from dataclasses import dataclass

__all__ = ["Place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A core's number, and what it shares with all others of its engine. `lanes`: partitions that a core serves."""

    core: int
    cores: int
    lanes: int
    local_bytes: int
