"""Run: semaphores are cleared when the host says so and no program runs, and at no other time."""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cover, Module, Signal
from amaranth.lib import wiring

from rtl.contract.config import named
from rtl.issue.run import Run
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "StartProof"]

_FREE = ("run", "keep", "wipe", "freeze", "finished", "faults", "quiet")


class WithoutRegions(Run):
    """Base and count of each client are 0: when a program starts and ends does not depend on them."""

    def _regions(self, m: Module) -> None:
        pass


class StartProof(wiring.Component):
    """A program is under way from its start until `done`; what the host writes then changes nothing. All inputs are
    free."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.run = run = WithoutRegions(named("tiny"))
        without_reset(m)
        for name in _FREE:
            port = getattr(run, name)
            m.d.comb += port.eq(AnySeq(len(port)))
        begun = Signal()
        under_way = Signal()
        starts = Signal()
        clears = Signal()
        kept = Signal()  # a start that kept semaphores has been
        m.d.comb += under_way.eq(run.start | (begun & ~run.done))
        m.d.sync += [
            begun.eq(run.start | (begun & ~run.done)),
            starts.eq(run.run & ~under_way),
            clears.eq(((run.run & ~run.keep) | run.wipe) & ~under_way),
            kept.eq(kept | (run.start & ~run.clear)),
        ]
        m.d.comb += [
            Assert(run.start == starts),
            Assert(run.clear == clears),
            Assert(~(run.clear & run.running)),
            Cover(run.start & run.clear & kept),
            Cover(run.clear & ~run.start & run.done),
            Cover(run.start & ~run.clear & run.done),
        ]
        return m


PROOFS = (
    Proof(
        name="issue_start",
        make=StartProof,
        depth=20,
        cover_depth=40,
        engine="abc pdr",
        short=True,
        faults=("a start that keeps semaphores clears them", "semaphores are cleared while a program runs"),
    ),
)
