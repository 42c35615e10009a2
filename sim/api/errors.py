"""What goes wrong at the hands of somebody who calls from Python: one kind of exception, one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from firmware.gpsimd.errors import FirmwareError
from rtl.contract.config import ConfigError
from sim.errors import PlexusError

if TYPE_CHECKING:
    from sim.api.result import Result

__all__ = ["RunError", "as_errors"]


class RunError(PlexusError):
    """A run that did not come out as it must: it halted, did not end, or left other bits than the golden machine.

    `result` is what there is of it, report included.
    """

    def __init__(self, sentence: str, result: "Result"):
        super().__init__(sentence)
        self.result = result

    def __reduce__(self) -> "tuple[type[RunError], tuple[str, Result]]":  # else it is made from the sentence alone
        return RunError, (str(self), self.result)


@contextmanager
def as_errors() -> Iterator[None]:
    """Errors of rooms that know no PlexusError, of configurations and of the firmware tools, become one with the same
    sentence; `__cause__` keeps them. So does memory of the host that is not there."""
    try:
        yield
    except MemoryError as error:
        raise PlexusError(f"this needs more memory than the host has{f': {error}' if str(error) else ''}") from error
    except (ConfigError, FirmwareError) as error:
        raise PlexusError(str(error)) from error
