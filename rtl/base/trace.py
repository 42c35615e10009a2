"""What a trace of a run is made of: outputs of a core, on which nothing hangs."""

from amaranth.hdl import Cat, Const, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from rtl.base.dispatch import SEQUENCE_BITS
from rtl.contract.config import Config
from rtl.contract.gpsimd import CORES_MAX
from rtl.contract.isa import COPY_QUEUES, Queue
from rtl.contract.timing import CONFLICT_PORTS, Engine

__all__ = ["MOVERS_MAX", "RINGS_MAX", "STATE_BITS", "IssueSignature", "TraceSignature", "of_rings"]

STATE_BITS = 4
MOVERS_MAX = 16
RINGS_MAX = 16
"""Widths of the masks, the same for every core, so that one driver reads them all."""


class IssueSignature(wiring.Signature):
    """`valid` for one cycle for each instruction that goes to who executes it, in order; with a semaphore's value or a
    released descriptor it counts as issued too, a faulty one does not. `sequence`: the second half of its ticket."""

    def __init__(self):
        super().__init__({"valid": Out(1), "sequence": Out(SEQUENCE_BITS)})


class TraceSignature(wiring.Signature):
    """Of the cycle in which it is seen. `running`: the cycle is counted. `state`: STATE_BITS an engine, what its
    counters count: 0 busy, 1 idle, 2 and up a cause of timing.STALLS. `issue[q]`: see IssueSignature. `begin`, `end`: a
    bit a ring, behind RINGS_MAX those of isa.COPY_QUEUES: its next descriptor is taken to be checked and moved, or has
    completed. `movers`: a bit a mover with rows under way. `refused`: a bit for each of timing.CONFLICT_PORTS.
    `core_tick`: a GPSIMD cycle ends, also while nothing there has work; `core_state`: STATE_BITS a core, in such a
    cycle what its counters count, a gpsimd.Counter; IDLE where there is no core."""

    def __init__(self):
        super().__init__(
            {
                "running": Out(1),
                "state": Out(STATE_BITS * len(Engine)),
                "issue": Out(IssueSignature()).array(len(Queue)),
                "begin": Out(RINGS_MAX + len(COPY_QUEUES)),
                "end": Out(RINGS_MAX + len(COPY_QUEUES)),
                "movers": Out(MOVERS_MAX),
                "refused": Out(len(CONFLICT_PORTS)),
                "core_tick": Out(1),
                "core_state": Out(STATE_BITS * CORES_MAX),
            }
        )


def of_rings(cfg: Config, told: Value) -> Value:
    """A bit a ring of the DMA, those of queues behind its dma.rings, in the places of a trace."""
    rings = cfg.dma.rings
    return Cat(told[:rings], Const(0, RINGS_MAX - rings), told[rings:])
