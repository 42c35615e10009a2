"""What is said of a sweep file that makes no sense."""

from sim.errors import PlexusError

__all__ = ["SweepError", "need"]


class SweepError(PlexusError):
    """A sweep file that makes no sense; one sentence."""


def need(ok: bool, sentence: str) -> None:
    """SweepError with this sentence unless `ok`."""
    if not ok:
        raise SweepError(sentence)
