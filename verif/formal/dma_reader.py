"""Reader: its bursts keep the 4 KiB rule, what it offers stays, and no beat comes that has no room.

Any rows, any time to the answers. The buffer's RAM is left out: nothing is said of what the beats hold.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.dma.movers.reader import Reader
from verif.formal.axi_port import SMALLEST
from verif.formal.axi_rules import in_4_kib
from verif.formal.free import FollowedRam, StandIn
from verif.formal.proof import Proof, without_reset
from verif.formal.stream_rules import surround

__all__ = ["PROOFS", "ReaderProof"]

_ROW_BYTES = 1 << 18  # of the longest


class ReaderProof(wiring.Component):
    """Beats due are those asked for and not come."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = SMALLEST
        reader = Reader(cfg)
        row = Signal(8)
        m.submodules.reader = StandIn(reader, Ram=lambda *shape: FollowedRam(*shape, followed=row))
        without_reset(m)
        due = Signal(range(2 * reader.depth))
        comes, takes = Signal(), Signal()
        m.d.comb += [comes.eq(AnySeq(1) & (due != 0)), takes.eq(AnySeq(1) & (reader.level != 0))]
        rules = surround(m, reader, beat_valid=comes, take=takes)
        burst, payload = reader.burst, reader.row.payload
        asks = burst.valid & burst.ready
        beats = burst.payload.length + 1
        m.d.sync += due.eq(due + Mux(asks, beats, 0) - comes)
        m.d.comb += [
            Assume((payload.bytes != 0) & (payload.bytes <= _ROW_BYTES)),
            Assert(~burst.valid | in_4_kib(burst.payload.beat << 4, burst.payload.length, cfg.hbm.port_bytes)),
            Assert(~burst.valid | (beats <= cfg.dma.burst_bytes // cfg.hbm.port_bytes)),
            Assert(due + reader.level <= reader.depth),
            Assert(reader.free + due + reader.level == reader.depth),
            Assert(reader.outstanding == ((reader.left != 0) | (due != 0))),
            Assert(reader.left <= _ROW_BYTES),
            Cover(rules["burst"].waits & asks & (burst.payload.length == 7)),
            Cover((due == 9) & (reader.level == 2)),
            Cover(rules["planned"].waits & reader.planned.ready & (due != 0)),
        ]
        return m


PROOFS = (
    Proof(
        name="dma_reader",
        make=ReaderProof,
        depth=2,
        cover_depth=12,
        fault_depth=8,
        faults=("bursts start anywhere and are full length: they cross 4 KiB",),
        short=True,
    ),
)
