"""Weighted toggles of events, by name and kind of data, as a table of events has them."""

from collections.abc import Mapping
from typing import Any

from sim.errors import PlexusError

__all__ = ["Prices"]


class Prices:
    """Weighted toggles of events by kind of data."""

    def __init__(self, table: Mapping[str, Any]):
        self.rows = {row["event"]: row for row in table["events"]}

    def of(self, event: str, data: str) -> float:
        """Errors: PlexusError if the table has no such event."""
        row = self.rows.get(event)
        if row is None:
            raise PlexusError(f"the table of events has no {event!r}; make it anew with plexus energy CONFIG")
        return row[data]
