"""What a kernel asks for and does not get."""

from firmware.views import KernelError

__all__ = ["MissingError"]


class MissingError(KernelError, AttributeError):
    """A name of NKI that there is not."""
