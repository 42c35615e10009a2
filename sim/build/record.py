"""What a finished build says of itself in built.json, and whether all that it names is still there.

A disk that was full, a machine that went down or a hand in the cache can spoil a finished build later. Its files
carry their sizes here, so that such a build is noticed by a look at the folder and made again.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["RECORD", "SpoiltError", "read_record", "write_record"]

RECORD = "built.json"


class SpoiltError(Exception):
    """A finished build that cannot be used; the text says which and why."""


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write built.json: `record`, and the sizes of all files that are there. The last act of a build."""
    files = {entry.name: entry.stat().st_size for entry in sorted(folder.iterdir()) if entry.is_file()}
    (folder / RECORD).write_text(json.dumps({**record, "files": files}, indent=1))


def read_record(folder: Path) -> dict[str, Any]:
    """What `write_record` saved. Errors: SpoiltError if it or a file of the build is not as it was left."""
    try:
        record = json.loads((folder / RECORD).read_text())
    except OSError as error:
        raise SpoiltError(f"{folder / RECORD} cannot be read ({error.strerror})") from None
    except ValueError:
        raise SpoiltError(f"{folder / RECORD} is not what a build wrote") from None
    if not isinstance(record, dict):
        raise SpoiltError(f"{folder / RECORD} is not what a build wrote")
    for key, kind in (("binary", str), ("content", str), ("files", dict)):
        if not isinstance(record.get(key), kind):
            raise SpoiltError(f"{folder / RECORD} has no {key}")
    for name, size in {record["binary"]: None, **record["files"]}.items():
        try:
            found = (folder / name).stat().st_size
        except OSError:
            raise SpoiltError(f"{folder / name} is missing") from None
        if found != size:
            raise SpoiltError(f"{folder / name} has {found:,} bytes and was built with {size}")
    return record
