"""What every error is that a user may meet, of this room and of those above it: one sentence each, exit code 2 at the
command line, plexus.Error from Python."""

__all__ = ["KernelError", "PlexusError"]


class PlexusError(Exception):
    """Something the user can put right; the text is one sentence with the value and the rule."""


class KernelError(PlexusError, ValueError):
    """A kernel that breaks a rule of the language or the machine; one sentence with value and rule."""
