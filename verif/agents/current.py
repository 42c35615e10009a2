"""Which instruction an engine on a clock of its own is at, and that its status names that one's opcode."""

from typing import Any

from rtl.contract.isa import INSTRUCTION
from rtl.contract.timing import PARTS, STALLS, Engine

__all__ = ["CurrentOpcode"]

_AT = INSTRUCTION.offset("opcode")


class CurrentOpcode:
    """Call `watch` in every root cycle. An instruction is the current one from the edge behind its acceptance on.

    Status is that of the engine's last edge. `seen`: (state, opcode) of all cycles that were told.
    """

    def __init__(self, dut: Any, engine: Engine):
        self.command = dut.queue__command__valid, dut.queue__command__ready, dut.queue__command__payload
        self.told = dut.tick, dut.queue__status__holds, dut.queue__status__state, dut.queue__status__opcode
        self.states = dict(enumerate(("busy", "idle", *STALLS[engine])))
        self.current = self.shown = -1
        self.seen: set[tuple[str, int]] = set()

    def watch(self, now: int) -> None:
        """What the status says in this cycle, then what is accepted in it."""
        tick, holds, state, opcode = (int(signal.value) for signal in self.told)
        name = self.states[state]
        if holds and name in PARTS:
            assert opcode == self.shown, f"cycle {now}: {name} is said to be of opcode {opcode}, not {self.shown}"
            self.seen.add((name, opcode))
        if tick:
            self.shown = self.current
        valid, ready, payload = self.command
        if valid.value == 1 and ready.value == 1:
            self.current = int(payload.value) >> _AT & 0xFF
