"""What configurations of all systems have in common."""

from typing import Any, Protocol

__all__ = ["AnyConfig"]


class AnyConfig(Protocol):
    """A frozen dataclass of fields and sections of fields; the configuration of a core, a link, a switch is one."""

    @property
    def name(self) -> str:
        """Of the configuration that it is or goes out from."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """All fields, as JSON takes them."""
        ...

    @property
    def hash(self) -> str:
        """Twelve hex digits that name the values, not the names."""
        ...
