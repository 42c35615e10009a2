"""Where the turns of a kernel's loops begin in its queues."""

from collections.abc import Mapping, Sequence

from firmware.program import Instruction
from rtl.contract.isa import Queue

__all__ = ["Turns"]


class Turns:
    """Of a kernel with these queues; loops end before those around them."""

    def __init__(self, queues: Mapping[Queue, Sequence[Instruction]]):
        self._queues = queues
        self._open: list[dict[Queue, list[int]]] = []
        self.found: dict[Queue, list[tuple[int, ...]]] = {queue: [] for queue in queues}
        """Of each loop that gave a queue anything, the places of the first instructions of its turns, and its end."""

    def begin(self) -> None:
        """A loop."""
        self._open.append({queue: [] for queue in self._queues})

    def turn(self) -> None:
        """Its next turn."""
        for queue, bounds in self._open[-1].items():
            bounds.append(len(self._queues[queue]))

    def end(self) -> None:
        """Its last turn was that."""
        for queue, bounds in self._open.pop().items():
            bounds.append(len(self._queues[queue]))
            if len(bounds) > 2 and bounds[0] < bounds[-1]:
                self.found[queue].append(tuple(bounds))
