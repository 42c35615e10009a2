"""Intake: which ring's next descriptor is checked and moved now."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import RoundRobin
from rtl.base.dma_port import COUNT_BITS, RELEASE, ring_count
from rtl.base.layouts import DESCRIPTOR_LAYOUT
from rtl.contract.config import Config
from rtl.dma.layouts import CLASSES, slot_bits

__all__ = ["Intake", "candidate_layout"]


def candidate_layout(cfg: Config) -> data.StructLayout:
    """A descriptor and the slot that it will have."""
    return data.StructLayout({"slot": slot_bits(cfg), "word": DESCRIPTOR_LAYOUT})


class Intake(wiring.Component):
    """Takes released descriptors only, ring by ring in turn, each ring in its order. What comes in a ring behind
    dma.rings counts as released.

    `parked`: a class with a job that waits for its row context takes no further one; rings whose next descriptor is of
    another class go on.
    `tail`: the next slot of each ring in its window of dma.ring_depth; `room`: the ring has that slot free; `opened`
    pulses when it is taken. `stop`: these rings give no more descriptors until `start`.
    `waiting`: a ring has released descriptors that were not taken. `offered`: one of them could be taken.
    Timing: one descriptor a cycle; `candidate` is combinational from the ring it comes from, and may turn
    to another ring, or go, while it waits: a ring that halts takes its offer back.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        rings = ring_count(cfg)
        super().__init__(
            {
                "start": In(1),
                "release": In(stream.Signature(RELEASE)),
                "ring": In(stream.Signature(DESCRIPTOR_LAYOUT)).array(rings),
                "stop": In(rings),
                "parked": In(CLASSES),
                "room": In(rings),
                "tail": In(data.ArrayLayout(range(cfg.dma.ring_depth), rings)),
                "opened": Out(rings),
                "waiting": Out(rings),
                "offered": Out(1),
                "candidate": Out(stream.Signature(candidate_layout(cfg))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rings = ring_count(self.cfg)
        m.submodules.turn = turn = RoundRobin(rings)
        chosen = Signal(rings)
        offers = Signal(rings)
        m.d.comb += [
            self.release.ready.eq(1),
            turn.requests.eq(offers),
            turn.accept.eq(self.candidate.valid & self.candidate.ready),
            chosen.eq(turn.grant),
            self.candidate.valid.eq(chosen.any()),
            self.offered.eq(offers.any()),
        ]
        for r, ring in enumerate(self.ring):
            taken = chosen[r] & self.candidate.ready
            m.d.comb += [
                offers[r].eq(
                    self.waiting[r] & ring.valid & self.room[r] & ~self.parked.bit_select(ring.payload.class_[:2], 1)
                ),
                ring.ready.eq(taken),
                self.opened[r].eq(taken),
            ]
            with m.If(chosen[r]):
                m.d.comb += [
                    self.candidate.payload.word.eq(ring.payload),
                    self.candidate.payload.slot.eq(r * self.cfg.dma.ring_depth + self.tail[r]),
                ]
            if r >= self.cfg.dma.rings:
                m.d.comb += self.waiting[r].eq(ring.valid & ~self.stop[r])
                continue
            pending = Signal(COUNT_BITS, name=f"pending{r}")
            add = Signal(COUNT_BITS, name=f"released{r}")
            with m.If(self.release.valid & (self.release.payload.ring == r)):
                m.d.comb += add.eq(self.release.payload.count)
            with m.If(self.start):
                m.d.sync += pending.eq(add)
            with m.Else():
                m.d.sync += pending.eq(pending + add - taken)
            m.d.comb += self.waiting[r].eq((pending != 0) & ~self.stop[r])
        return m
