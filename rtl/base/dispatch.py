"""How an instruction queue speaks to its engine, and what an engine tells the counters."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.layouts import INSTRUCTION_LAYOUT

__all__ = [
    "COMMAND",
    "OPCODE_BITS",
    "SEQUENCE_BITS",
    "EngineSignature",
    "EngineStatusSignature",
    "RetireSignature",
]

SEQUENCE_BITS = 16
OPCODE_BITS = 8

COMMAND = data.StructLayout({"word": INSTRUCTION_LAYOUT, "sequence": SEQUENCE_BITS})
"""A checked instruction whose semaphores hold, and the second half of its ticket."""


class EngineStatusSignature(wiring.Signature):
    """What an engine does in this cycle, seen from the engine.

    `holds`: it has an instruction that has not sent its last beat; `state` is then 0 (busy: a beat
    moved) or 2 + the position of a stall cause in timing.STALLS. `draining`: only results are on
    their way. Neither: idle, or whatever the queue says. `opcode`: while it is busy or waits for a unit, of the
    instruction that is; only engines of timing.PARTED say it, the others leave 0.
    """

    def __init__(self):
        super().__init__({"holds": Out(1), "state": Out(4), "draining": Out(1), "opcode": Out(OPCODE_BITS)})


class EngineSignature(wiring.Signature):
    """Seen from the queue. `done` pulses once for each command, in order, one a cycle at most, when
    the command's last write has committed; `cause`, then, is an isa.Cause if it failed, and `address` that of its
    record. What it reports after that has no meaning."""

    def __init__(self):
        super().__init__(
            {
                "command": Out(stream.Signature(COMMAND)),
                "done": In(1),
                "cause": In(8),
                "address": In(64),
                "status": In(EngineStatusSignature()),
            }
        )


class RetireSignature(wiring.Signature):
    """A retire port: outputs only. `valid` for one cycle for each instruction, in order; its semaphore
    update is visible from the next cycle. `cause` is not 0 for the one that halted the queue, which is
    the last record of a run."""

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),
                "queue": Out(3),
                "sequence": Out(SEQUENCE_BITS),
                "cause": Out(8),
            }
        )
