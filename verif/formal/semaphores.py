"""Semaphores: no update lost or done twice, one a cycle, and what is read is exact."""

import dataclasses

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Cat, Cover, Module, Mux, Signal, signed
from amaranth.lib import wiring

from rtl.base.dma_port import SEMAPHORE_UPDATE
from rtl.contract.config import IssueConfig, named
from rtl.contract.isa import Update
from rtl.issue.semaphores import Semaphores
from verif.formal.arbiter import ones
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "SemaphoresProof"]

_CFG = dataclasses.replace(named("tiny"), issue=IssueConfig(queue_depth=4, semaphores=16))


class SemaphoresProof(wiring.Component):
    """Follows one semaphore, chosen by the prover, through all updates that are accepted."""

    WRITERS = 3

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.semaphores = semaphores = Semaphores(_CFG, 2, self.WRITERS)
        without_reset(m)
        chosen = Signal(4)
        other = Signal(4)
        expected = Signal(signed(32))
        after = Signal(signed(32))
        accepted = Signal(self.WRITERS)
        offered = Signal(self.WRITERS)
        m.d.comb += [
            chosen.eq(AnyConst(4)),
            other.eq(AnySeq(4)),
            semaphores.clear.eq(AnySeq(1)),
            semaphores.index[0].eq(chosen),
            semaphores.index[1].eq(other),
            after.eq(expected),
        ]
        for w, update in enumerate(semaphores.update):
            payload = Signal(SEMAPHORE_UPDATE, name=f"payload_{w}")
            m.d.comb += [
                payload.as_value().eq(AnySeq(payload.shape().size)),
                update.payload.eq(payload),
                update.payload.update.eq(Mux(payload.update[0], Update.ADD, Update.SET)),
                update.valid.eq(AnySeq(1)),
                offered[w].eq(update.valid),
                accepted[w].eq(update.valid & update.ready),
            ]
            # Every accepted update counts here, whatever the unit does with it.
            with m.If(accepted[w] & (update.payload.index[:4] == chosen)):
                m.d.comb += after.eq(Mux(update.payload.update == Update.SET, 0, expected) + update.payload.value)
        m.d.sync += expected.eq(Mux(semaphores.clear, 0, after))

        m.d.comb += [
            Assert(semaphores.value[0] == expected),
            Assert(ones(accepted) == offered.any()),
            Cover(offered.all() & (expected == 5)),
            Cover((expected == -1) & Cat(semaphores.clear).any()),
        ]
        with m.If(other == chosen):
            m.d.comb += Assert(semaphores.value[1] == expected)
        return m


PROOFS = (
    Proof(
        name="semaphores",
        make=SemaphoresProof,
        depth=2,
        cover_depth=6,
        faults=(
            "a set of a semaphore adds",
            "an update of a semaphore that has to wait for another one is lost",
            "a decrement of a semaphore is not done",
        ),
    ),
)
