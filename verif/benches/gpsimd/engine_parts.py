"""Beside a GPSIMD engine: semaphores, and what it says of itself compared with what it shows of its cores."""

from rtl.contract.gpsimd import Counter
from rtl.contract.isa import Opcode, Update

__all__ = ["Semaphores", "StatusCheck"]


class Semaphores:
    """As the golden engine wants them."""

    def __init__(self, values: list[int]):
        self.semaphores = list(values)

    def update(self, index: int, update: Update, value: int) -> None:
        if update == Update.NONE:
            return
        new = value + (self.semaphores[index] if update == Update.ADD else 0)
        self.semaphores[index] = (new + (1 << 31)) % (1 << 32) - (1 << 31)


class StatusCheck:
    """Of an engine of `cores`. `before`: core_state and opcode at the tick before, which its status is about."""

    def __init__(self, cores: int):
        self.before = (0, 0)
        self._cores = cores
        self._right: set[tuple[int, ...]] = set()  # with a status that is right

    def check(self, state: int, told: int) -> None:
        """`state`: busy if a core is, else that of the lowest that is awake; `told`: the opcode."""
        shown, opcode = self.before
        if (shown, opcode, state, told) in self._right:
            return
        assert told == opcode, f"the engine tells that it executes {told}, not {opcode}"
        states = [Counter(shown >> 4 * core & 15) for core in range(self._cores)]
        run = [one for one in states if one != Counter.IDLE]
        awake = [one for one in run if one not in (Counter.SLEEP, Counter.SEMAPHORE)]
        waits = (Counter.MEMORY, Counter.DMA)  # for the end, and before the start
        if opcode != Opcode.GP_RUN:
            waits = (Counter.MEMORY, Counter.SBUF, Counter.BUSY)
        busy = (Counter.BUSY,) if Counter.BUSY in run else (awake or run)[:1]
        assert state in (busy if run else waits), f"the engine shows {Counter(state).name}, its cores {states}"
        self._right.add((shown, opcode, state, told))
