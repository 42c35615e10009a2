"""What the points of a sweep came to: rows.jsonl, a line a row, which nothing but the last line can be torn of."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.errors import PlexusError

__all__ = ["FILE", "STATUSES", "Rows"]

FILE = "rows.jsonl"
STATUSES = ("ok", "mismatch", "fault", "refused", "does_not_fit", "timeout", "crashed", "build_failed")


class Rows:
    """Rows by the key of their point; later lines win. `made_of`: digest of sources and tools of this process, rows of
    another one are `stale` and not counted."""

    def __init__(self, folder: Path, made_of: str, *, fresh: bool = False):
        self.path = folder / FILE
        self.made_of = made_of
        self.found: dict[str, dict[str, Any]] = {}
        self.stale = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if fresh:
                self.path.unlink(missing_ok=True)
        except OSError as error:
            raise PlexusError(f"{self.path} cannot be read: {error.strerror}") from None
        self.again()

    def again(self) -> None:
        """Read them anew: an interrupt may come between a line that is on the disk and its place in `found`. Errors:
        PlexusError."""
        self.found = {}
        try:
            self._read()
        except OSError as error:
            raise PlexusError(f"{self.path} cannot be read: {error.strerror}") from None

    def _read(self) -> None:
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):  # a line that was being written when its process ended
            with self.path.open("r+b") as file:
                file.truncate(whole)
        stale: set[str] = set()
        for number, line in enumerate(data[:whole].splitlines(), 1):
            try:
                row = json.loads(line)
                key, made_of = row["key"], row["made_of"]
            except (ValueError, KeyError, TypeError):
                raise PlexusError(f"line {number} of {self.path} is no row; --fresh begins anew") from None
            if made_of == self.made_of:
                self.found[key] = row
            else:
                stale.add(key)
        self.stale = len(stale - self.found.keys())

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; it is on the disk when this returns. Errors: PlexusError if it cannot be written."""
        line = (json.dumps({**row, "made_of": self.made_of}, separators=(",", ":")) + "\n").encode()
        try:
            with self.path.open("ab") as file:
                at = file.tell()
                try:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(at)
                    raise
        except OSError as error:
            raise PlexusError(f"{self.path} cannot be written: {error.strerror}; what it has is whole") from None
        self.found[row["key"]] = dict(row)
