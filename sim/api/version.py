"""The version of what is imported."""

import importlib.metadata

__all__ = ["version"]


def version() -> str:
    """Of the installed package; "unknown" where the sources are only on the path."""
    try:
        return importlib.metadata.version("plexus")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
