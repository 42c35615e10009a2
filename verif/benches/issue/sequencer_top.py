"""A sequencer with its clock. Semaphores and words of HBM follow from their numbers: a bench need not answer in a
cycle."""

from amaranth.hdl import DomainRenamer, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from rtl.base.clock_gate import ClockGate, gated_domain
from rtl.base.dma_port import PEEK_BITS
from rtl.contract.config import Config
from rtl.issue.sequencer import Sequencer

__all__ = ["SequencerTop", "loaded", "semaphore"]


_OWN = {"salt": In(32), "answers": In(1), "broken": In(PEEK_BITS)}


def semaphore(index: int, salt: int) -> int:
    """The value of a semaphore, as bits."""
    return (index + 1) * salt % (1 << 32)


def loaded(number: int, salt: int) -> int:
    """The word of HBM with that number, as bits."""
    return ((number + 3) * salt ^ number >> 7) % (1 << 32)


class SequencerTop(wiring.Component):
    """Sequencer, with `salt` instead of `index` and `value`; HBM answers with `answers`, the word `broken` with an
    error. Timing: Sequencer's."""

    def __init__(self, cfg: Config, window: int = 8, limit: int = 24):
        self.sequencer = Sequencer(cfg, window, limit)
        inner = ("index", "value", "wake", "peek", "peeked", "peek_failed")
        ports = {name: member for name, member in self.sequencer.signature.members.items() if name not in inner}
        super().__init__({**ports, **_OWN})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sequencer = self.sequencer
        m.submodules.gate = gate = ClockGate()
        gated_domain(m, "front", gate)
        m.submodules.sequencer = DomainRenamer("front")(sequencer)
        m.d.comb += gate.enable.eq(sequencer.wake)
        for name, member in self.signature.members.items():
            if name in _OWN:
                continue
            ours, its = getattr(self, name), getattr(sequencer, name)
            if member.is_signature:
                connect(m, its, flipped(ours))
            else:
                m.d.comb += ours.eq(its) if member.flow == wiring.Out else its.eq(ours)
        number = sequencer.peek.payload
        m.d.comb += [
            sequencer.value.eq(((sequencer.index + 1) * self.salt)[:32]),
            sequencer.peek.ready.eq(sequencer.peek.valid & self.answers),
            sequencer.peeked.eq(((number + 3) * self.salt)[:32] ^ number[7:]),
            sequencer.peek_failed.eq((number == self.broken) | ~self.answers),
        ]
        return m
