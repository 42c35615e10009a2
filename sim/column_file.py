"""Columns of NumPy in one file, with the number of their format: written whole or not at all, read or refused in a
sentence."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sim.errors import PlexusError
from sim.whole_file import whole_file

__all__ = ["load_columns", "save_columns"]


def save_columns(path: Path, columns: Mapping[str, Any]) -> None:
    """`path`, an .npz, in a folder that is made. One of the columns is `format`. Errors: PlexusError if it cannot be
    written."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    with whole_file(path) as place:
        path.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as out:
            np.savez_compressed(out, **arrays)  # pyright: ignore[reportArgumentType]


def load_columns(path: Path, format_: int, names: Sequence[str], why_not: str) -> dict[str, np.ndarray]:
    """These columns. Errors: PlexusError if the file is not there (`why_not` says why), torn, or of another format."""
    if not path.exists():
        raise PlexusError(f"{path.parent} has no {path.name}: {why_not}")
    try:
        with np.load(path, allow_pickle=False) as columns:
            if "format" in columns and int(columns["format"]) != format_:
                raise PlexusError(f"{path} has format {int(columns['format'])}, not {format_}: run it again")
            missing = [name for name in names if name not in columns]
            if missing:
                raise PlexusError(f"{path} has no column {missing[0]}: it is of another version; run it again")
            return {name: columns[name] for name in names}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise PlexusError(f"{path} is torn: {error or type(error).__name__}") from None
