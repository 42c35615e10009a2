"""Named arrays in a file, as a host hands them over."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from firmware.views import KernelError

__all__ = ["read_npz"]


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name. KernelError if it is none."""
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise KernelError(f"{path} holds one array, not an archive of named ones: write it with np.savez")
        with file:
            return {name: file[name] for name in file.files}
    except KernelError:
        raise
    except FileNotFoundError:
        raise KernelError(f"there is no file {path}") from None
    except OSError as error:
        raise KernelError(f"{path} cannot be read: {error.strerror or error}") from None
    # A damaged archive, one with a password, and one in a compression that this Python has not, each raise their own.
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError):
        raise KernelError(f"{path} is not an .npz archive of plain arrays") from None
