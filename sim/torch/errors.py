"""What PyTorch's user meets: a plexus.Error that is a RuntimeError too, as torch's own are."""

from sim.errors import PlexusError

__all__ = ["TorchError", "Unsupported"]


class TorchError(PlexusError, RuntimeError):
    """One sentence with the value and the rule."""


class Unsupported(Exception):
    """An operator, or this use of it, has no nodes: why, as the end of a sentence."""
