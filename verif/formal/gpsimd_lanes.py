"""LaneBus and LaneRows: cores that share a word port of SBUF are served alone in a quadrant and in turn; rows that go
through it are those that memory holds.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.base.arbiter import RoundRobin
from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import Config, named
from rtl.contract.gpsimd import lanes
from rtl.gpsimd.lane_bus import LaneBus
from rtl.gpsimd.lane_rows import LaneRows
from verif.formal.arbiter import ones, turn_comes
from verif.formal.free import StandIn, drive
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "LaneBusProof", "LaneRowsProof"]


class LaneBusProof(wiring.Component):
    """Any requests of all cores; the wait of one, chosen by the prover, is counted."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = LaneBus(self.cfg)
        turns: list[RoundRobin] = []

        def turn(count: int) -> RoundRobin:
            turns.append(RoundRobin(count))
            return turns[-1]

        m.submodules.bus = StandIn(bus, RoundRobin=turn).elaborate(platform)
        without_reset(m)
        for core in bus.lanes:
            drive(m, core.valid)
            drive(m, core.request)
        read, write = bus.sbuf_read, bus.sbuf_write
        for port in (read.ready, read.data, read.data_valid, write.ready):
            drive(m, port)
        self._port(m, bus, turns[0], read, writes=False)
        self._port(m, bus, turns[1], write, writes=True)
        count = lanes(self.cfg.partitions)
        for k, core in enumerate(bus.lanes):
            request, mine = core.request, slice(count * k, count * (k + 1))
            goes = core.valid & core.ready & request.write
            m.d.comb += [
                Assert(core.reply == read.data[64 * mine.start : 64 * mine.stop]),
                Assert(~write.ready | (write.partitions[mine] == Mux(goes, request.partitions, 0))),
                Assert(~goes | (write.bytes == request.bytes)),
                Assert(~goes | (write.data[64 * mine.start : 64 * mine.stop] == request.data)),
            ]
        return m

    def _port(self, m: Module, bus: LaneBus, turn: RoundRobin, port, *, writes: bool) -> None:
        """One way, into SBUF or out of it."""
        name = "write" if writes else "read"
        asks = Cat(core.valid & (core.request.write == writes) for core in bus.lanes)
        served = Cat(ask & core.ready for ask, core in zip(asks, bus.lanes, strict=True))
        m.d.comb += [
            Assert(port.valid == asks.any()),
            Assert(served.any() == (asks.any() & port.ready)),
        ]
        per = bus.cores // QUADRANTS
        for q in range(QUADRANTS):
            mine = slice(per * q, per * (q + 1))
            m.d.comb += [
                Assert(ones(served[mine]) <= 1),
                Assert(~port.ready | (port.quadrants[q] == served[mine].any())),
            ]
            for k in range(bus.cores)[mine]:
                request = bus.lanes[k].request
                other = (request.bytes != bus.sbuf_write.bytes) if writes else False
                m.d.comb += [
                    Assert(~served[k] | (port.word[q] == request.word)),
                    Assert(~(asks[k] & port.ready) | served[mine].any() | other),
                ]

        # the wait of one
        chosen = Signal(range(bus.cores), name=f"{name}_chosen")
        passed = Signal(range(2 * bus.cores), name=f"{name}_passed")
        m.d.comb += chosen.eq(AnyConst(len(chosen)))
        with m.If(~asks.bit_select(chosen, 1) | served.bit_select(chosen, 1)):
            m.d.sync += passed.eq(0)
        with m.Elif(port.ready):
            m.d.sync += passed.eq(passed + 1)
        m.d.comb += [
            Assert(passed + turn_comes(m, turn, chosen) <= bus.cores - 1),
            Cover(served.bit_select(chosen, 1) & (passed == bus.cores // 2)),
            Cover(ones(served) == QUADRANTS),
        ]


class LaneRowsProof(wiring.Component):
    """One word of SBUF, chosen by the prover, is followed. Rows are loaded in any order and stored one after the
    other, as RowStores has them, and a store ends with its last row. No row is loaded while it is stored, or in the
    cycle after."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.rows = rows = LaneRows(self.cfg)
        without_reset(m)
        count, request = rows.lanes, rows.request
        for port in (rows.line_en, rows.line_row, rows.row_en, rows.row, rows.row_data, rows.row_last, rows.reply):
            drive(m, port)
        mask, followed = AnySeq(count), AnyConst(len(request.word))
        m.d.comb += [
            rows.row_mask.eq(Cat(bit.replicate(4) for bit in mask)),
            rows.ready.eq(AnySeq(1) & rows.valid),
        ]
        goes, here = rows.valid & rows.ready, request.word == followed
        held = [Signal(32 * count, name=f"held_{n}") for n in range(2)]  # by SBUF, the two rows of the word
        want = [Signal(32 * count, name=f"want_{n}") for n in range(2)]  # by what was stored

        def halves(words: Value, n: int) -> Value:
            return Cat(words[64 * lane + 32 * n :][:32] for lane in range(count))

        # SBUF
        for n in range(2):
            for lane in range(count):
                at = slice(32 * lane, 32 * lane + 32)
                byte = request.bytes[4 * n]
                with m.If(goes & request.write & here & request.partitions[lane] & byte):
                    m.d.sync += held[n][at].eq(halves(request.data, n)[at])
                with m.If(rows.row_en & rows.row_ready & (rows.row == Cat(n, followed)) & mask[lane]):
                    m.d.sync += want[n][at].eq(rows.row_data[at])
            four = request.bytes[4 * n : 4 * n + 4]
            m.d.comb += Assert(~(goes & request.write) | four.all() | ~four.any())
        answers = Signal()
        m.d.sync += answers.eq(goes & ~request.write & here)
        m.d.comb += [Assume(~answers | (halves(rows.reply, n) == held[n])) for n in range(2)]

        # loads
        taken, odd, mine, even = Signal(), Signal(), Signal(), Signal(len(rows.line_row))
        m.d.sync += [
            taken.eq(rows.line_en & rows.line_ready),
            odd.eq(rows.line_row[0]),
            mine.eq(rows.line_row[1:] == followed),
            even.eq(rows.line_row),
        ]
        m.d.comb += [
            Assert(~(taken & mine) | (rows.line == Mux(odd, held[1], held[0]))),
        ]

        # stores
        under_way, row = Signal(), Signal(len(rows.row))
        with m.If(rows.row_en & rows.row_ready):
            m.d.sync += [under_way.eq(~rows.row_last), row.eq(rows.row)]
        was_stored, stored_row = Signal(), Signal(len(rows.row))
        m.d.sync += [was_stored.eq(rows.row_en), stored_row.eq(rows.row)]
        offer = Cat(rows.row, rows.row_data, mask, rows.row_last)
        stalls, stored = Signal(), Signal(len(offer))
        m.d.sync += [stalls.eq(rows.row_en & ~rows.row_ready), stored.eq(offer)]
        m.d.comb += [
            Assume(~(rows.row_en & under_way) | (rows.row == (row + 1)[: len(row)])),
            Assume(~(rows.line_en & rows.row_en & (rows.line_row == rows.row))),
            Assume(~(rows.line_en & was_stored & (rows.line_row == stored_row))),
            Assume(~stalls | rows.row_en & (stored == offer)),
        ]
        waits_here = rows.waits & (row[1:] == followed)
        m.d.comb += [
            Assert(want[1] == held[1]),
            Assert(want[0] == Mux(waits_here, rows.waiting, held[0])),
            Assert(under_way | ~rows.waits),  # what was stored is in SBUF behind the last row
            Assert(~rows.waits | ~row[0]),
            # for the induction: the half that is kept
            Assert(rows.kept == (taken & rows.fresh & ~odd)),
            Assert(~rows.kept | (rows.kept_word == even[1:])),
            Assert(~(taken & mine & rows.from_kept) | (rows.kept_data == held[1])),
            Assert(~taken | (rows.from_kept ^ rows.fresh)),
            Assert(~(taken & mine & rows.fresh) | answers),
            Assert(~taken | (rows.upper == odd)),
            Cover(taken & rows.from_kept & mine),
            Cover(goes & request.write & (request.bytes == 0xFF) & here),
            Cover(stalls & rows.waits & ~mask.all()),
        ]
        return m


PROOFS = (
    Proof(
        name="gpsimd_lane_bus",
        make=lambda: LaneBusProof(named("full")),
        depth=2,
        cover_depth=8,
        fault_depth=8,
        short=True,
        faults=(
            "bytes that one core writes are written of all",
            "two cores of a quadrant go to SBUF at once",
            "a core writes bytes of its words that another one chose",
        ),
    ),
    Proof(
        name="gpsimd_lane_rows",
        make=lambda: LaneRowsProof(named("tiny")),
        depth=3,
        cover_depth=8,
        fault_depth=8,
        short=True,
        faults=(
            "the half of a word that is kept is the other one",
            "a row of lanes that is stored in part is taken for whole",
        ),
    ),
)
