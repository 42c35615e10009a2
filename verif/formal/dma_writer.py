"""Writer: its bursts keep the 4 KiB rule, what it offers stays, and a row is done after HBM's last answer for it.

Any limit of a burst. Units of a row come in ascending order, as an Aligner gives them. The RAMs are left out: nothing
is said of data and strobes, nor of whose row an answer ends.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.contract.timing import DMA_ROWS_IN_FLIGHT
from rtl.dma.movers.writer import Writer
from verif.formal.axi_port import SMALLEST
from verif.formal.axi_rules import in_4_kib
from verif.formal.free import FollowedRam, StandIn, fifo_sound, power_of_two
from verif.formal.proof import Proof, without_reset
from verif.formal.stream_rules import surround

__all__ = ["PROOFS", "WriterProof"]


class WriterProof(wiring.Component):
    """Answers come to bursts that have left. A unit is a beat here (the port has 16 bytes)."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = SMALLEST
        writer = Writer(cfg)
        row = Signal(8)
        m.submodules.writer = StandIn(writer, Ram=lambda *shape: FollowedRam(*shape, followed=row))
        without_reset(m)
        due = Signal(8)  # bursts that have left and have no answer
        answers, takes = Signal(), Signal()
        m.d.comb += [answers.eq(AnySeq(1) & (due != 0)), takes.eq(AnySeq(1) & writer.w_valid)]
        longest = Signal(range(cfg.dma.burst_bytes + 1))
        m.d.comb += [
            longest.eq(AnyConst(len(longest))),
            Assume(power_of_two(longest) & (longest >= cfg.hbm.port_bytes) & (longest <= cfg.dma.burst_bytes)),
        ]
        rules = surround(m, writer, b_valid=answers, w_take=takes, limit_burst_bytes=longest)
        unit, burst, done = writer.unit, writer.burst, writer.done
        enters = unit.valid & unit.ready
        leaves = burst.valid & burst.ready
        answered = answers & writer.b_ready
        m.d.sync += due.eq(due + leaves - answered)

        inside = Signal()
        last_to = Signal.like(unit.payload.to)
        m.d.comb += Assume(~inside | (unit.payload.to == last_to + 1))
        m.d.comb += Assume(~inside | (unit.payload.to != 0))  # a row does not wrap
        with m.If(enters):
            m.d.sync += [inside.eq(~unit.payload.last), last_to.eq(unit.payload.to)]

        most = Signal(range(cfg.dma.burst_bytes // cfg.hbm.port_bytes + 1))
        m.d.comb += [most.eq(longest // cfg.hbm.port_bytes), Assert(writer.used <= 4 * most)]
        m.d.comb += Assert(writer.used == writer.stored + writer.full + writer.w_valid)
        entries = [writer.burst.payload, *(entry.burst for entry in writer.bursts.entries)]
        for entry in entries:
            m.d.comb += [
                Assert(in_4_kib(entry.beat << 4, entry.length, cfg.hbm.port_bytes)),
                Assert((entry.beat & (most - 1)) + entry.length < most),
            ]
        # a row is done at most once for each answer, never before one
        owed = Signal(8)  # answers that ended no row yet, or whose row has not been told
        m.d.sync += owed.eq(Mux(answered, Mux(owed == 255, 255, owed + 1), owed) - (done.valid & done.ready))
        m.d.comb += [
            Assert(~done.valid | (owed != 0)),
            Assert(writer.unanswered == (due != 0)),
            Assert(writer.sent.level == due),
            Assert(due <= DMA_ROWS_IN_FLIGHT + 1),
            Assert(writer.opening | inside),
            # for the induction
            Assert(fifo_sound(writer.bursts) & fifo_sound(writer.dones)),
            Assert(writer.dones.level <= owed),
            Assert(
                writer.opening
                | (
                    (writer.first <= last_to)
                    & (writer.first ^ last_to < most)  # in one window
                    & (last_to & (most - 1) != most - 1)
                )
            ),
            Cover(leaves & (burst.payload.length == 7) & rules["burst"].waits),
            Cover(rules["done"].waits & done.ready & (due == 2)),
            Cover(leaves & (due == 2) & (burst.payload.length == 0)),
        ]
        return m


PROOFS = (
    Proof(
        name="dma_writer",
        make=WriterProof,
        depth=3,
        cover_depth=14,
        fault_depth=8,
        faults=("a row is done when its last burst is sent", "bursts to HBM are as long as is built"),
        sources=("plexus_ram.sv",),
    ),
)
