"""An instruction of a queue's program, and how it ends."""

from dataclasses import dataclass

from rtl.contract.isa import Cause

__all__ = ["Expected"]


@dataclass
class Expected:
    """An instruction of the program and how it ends."""

    word: int
    f: dict[str, int]
    cause: int
    address: int
    refused: bool = False
    failure: int = Cause.NONE  # what the engine says at its end
    told: int = Cause.NONE  # why the sequencer refuses it

    @property
    def to_engine(self) -> bool:
        """Needs the engine."""
        return self.f["opcode"] >= 16

    @property
    def faulty(self) -> bool:
        """Refused by the check: it waits for nothing."""
        return bool(self.cause) and not self.refused
