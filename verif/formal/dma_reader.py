"""Reader: its bursts keep the 4 KiB rule, what it offers stays, and no beat comes that has no room.

Any rows, any time to the answers, any limits of a burst and of what is in flight. The buffer's RAM is left out: nothing
is said of what the beats hold.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.dma.movers.reader import Reader
from verif.formal.axi_port import SMALLEST
from verif.formal.axi_rules import in_4_kib
from verif.formal.free import FollowedRam, StandIn, power_of_two
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
        port = cfg.hbm.port_bytes
        longest, flying = Signal(range(cfg.dma.burst_bytes + 1)), Signal(range(cfg.dma.buffer_bytes + 1))
        m.d.comb += [
            longest.eq(AnyConst(len(longest))),
            flying.eq(AnyConst(len(flying))),
            Assume(power_of_two(longest) & (longest >= port) & (longest <= cfg.dma.burst_bytes)),
            Assume((flying % port == 0) & (flying >= longest) & (flying <= cfg.dma.buffer_bytes)),
        ]
        most = longest // port
        rules = surround(m, reader, beat_valid=comes, take=takes, limit_burst_bytes=longest, limit_buffer_bytes=flying)
        burst, payload = reader.burst, reader.row.payload
        asks = burst.valid & burst.ready
        beats = burst.payload.length + 1
        m.d.sync += due.eq(due + Mux(asks, beats, 0) - comes)
        m.d.comb += [
            Assume((payload.bytes != 0) & (payload.bytes <= _ROW_BYTES)),
            Assert(~burst.valid | in_4_kib(burst.payload.beat << 4, burst.payload.length, port)),
            Assert(~burst.valid | ((burst.payload.beat & (most - 1)) + beats <= most)),
            Assert((due + reader.level) * port <= flying),
            Assert((reader.free + due + reader.level) * port == flying),
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
        faults=(
            "bursts start anywhere and are full length: they cross 4 KiB",
            "bursts from HBM are as long as is built",
            "a mover has as much in flight as is built",
        ),
        short=True,
    ),
)
