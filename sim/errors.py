"""Errors that a user may meet: one sentence each, exit code 2 at the command line."""

__all__ = ["PlexusError"]


class PlexusError(Exception):
    """Something the user can put right; the text is one sentence with the value and the rule."""
