"""Fifo and RamFifo: an entry that enters leaves once, in its turn, unchanged; the level counts."""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.base.fifo import Fifo, RamFifo
from verif.formal.proof import Proof, without_reset
from verif.formal.stream_rules import StreamRules

__all__ = ["PROOFS", "FifoProof"]

WIDTH = 3
DEPTH = 3


class FifoProof(wiring.Component):
    """Follows one entry, chosen by the prover, through a FIFO of either kind."""

    def __init__(self, fifo: Fifo | RamFifo, capacity: int):
        self.fifo = fifo
        self.capacity = capacity
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fifo = fifo = self.fifo
        without_reset(m)
        enter = Signal()
        leave = Signal()
        m.d.comb += [
            fifo.i.valid.eq(AnySeq(1)),
            fifo.i.payload.eq(AnySeq(WIDTH)),
            fifo.o.ready.eq(AnySeq(1)),
            enter.eq(fifo.i.valid & fifo.i.ready),
            leave.eq(fifo.o.valid & fifo.o.ready),
        ]

        inside = Signal(range(self.capacity + 3))  # counted from outside
        m.d.sync += inside.eq(inside + enter - leave)
        m.d.comb += [
            Assert(inside <= self.capacity),
            Assert(fifo.level == inside),
            Assert(~leave | (inside != 0)),
        ]

        # the entry that is followed: how many are before it
        chosen = Signal(WIDTH)
        followed = Signal()
        before = Signal(range(self.capacity + 3))
        followed_before = Signal()
        m.d.comb += chosen.eq(AnyConst(WIDTH))
        begin = enter & ~followed & ~followed_before & (fifo.i.payload == chosen) & AnySeq(1)
        with m.If(begin):
            m.d.sync += [followed.eq(1), followed_before.eq(1), before.eq(inside - leave)]
        with m.Elif(followed & leave):
            m.d.sync += [before.eq(before - 1), followed.eq(before != 0)]
        with m.If(followed):
            m.d.comb += Assert(before < inside)
            with m.If(fifo.o.valid & (before == 0)):
                m.d.comb += Assert(fifo.o.payload == chosen)
        self._invariants(m, inside, followed, before, chosen)

        m.submodules.rules = StreamRules(fifo.o.valid, fifo.o.ready, fifo.o.payload)

        was_full = Signal()
        with m.If(inside == self.capacity):
            m.d.sync += was_full.eq(1)
        m.d.comb += [
            Cover(was_full & (inside == 0)),
            Cover(enter & leave & was_full & (inside == self.capacity - 1)),
            Cover(followed & leave & (before == 0) & was_full),
        ]
        return m

    def _invariants(self, m: Module, inside: Signal, followed: Signal, before: Signal, chosen: Signal) -> None:
        """What the induction must know about the inside of the FIFO."""
        fifo = self.fifo

        def ahead(pointer: Value, count: Value) -> Value:
            far = pointer + count
            return Mux(far >= fifo.depth, far - fifo.depth, far)

        if isinstance(fifo, Fifo):
            m.d.comb += [Assert(fifo.read < fifo.depth), Assert(fifo.write < fifo.depth)]
            m.d.comb += Assert(fifo.write == ahead(fifo.read, inside))
            with m.If(followed):
                with m.Switch(ahead(fifo.read, before)):
                    for n, entry in enumerate(fifo.entries):
                        with m.Case(n):
                            m.d.comb += Assert(entry == chosen)


PROOFS = (
    Proof(
        name="fifo",
        make=lambda: FifoProof(Fifo(WIDTH, DEPTH), DEPTH),
        depth=4,
        cover_depth=12,
        fault_depth=12,
        faults=(
            "a FIFO takes an entry when full",
            "the level of a FIFO forgets an entry that enters while another leaves",
            "a FIFO reads the entry after the next one",
        ),
        short=True,
    ),
    Proof(
        name="ram_fifo",
        make=lambda: FifoProof(RamFifo(WIDTH, DEPTH), DEPTH + 1),
        engine="abc pdr",
        depth=1,
        cover_depth=16,
        fault_depth=16,
        faults=(
            "a FIFO in a RAM takes an entry when full",
            "a FIFO in a RAM fetches the next entry over one that has not left",
        ),
        sources=("plexus_ram.sv",),
    ),
)
