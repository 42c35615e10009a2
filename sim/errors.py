"""Errors that a user may meet; they begin in firmware/errors.py."""

from firmware.errors import PlexusError

__all__ = ["PlexusError"]
