"""A GPSIMD tile: a scalar core, its local memory, and what ends a run there."""

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.contract.config import Config
from rtl.contract.gpsimd import SHARED_BYTES, Counter, Region, lanes
from rtl.gpsimd.lane_rows import LaneRows, lane_request
from rtl.gpsimd.layouts import DEVICE, MOVED_BITS, Place
from rtl.gpsimd.local_memory import LocalMemory
from rtl.gpsimd.lookup import LocalLookup
from rtl.gpsimd.reach import REGION_BIT, Reach, in_local
from rtl.gpsimd.scalar_core import ScalarCore
from rtl.gpsimd.shared_memory import shared_rows_ports

__all__ = ["Tile"]


def lane_ports(cfg: Config) -> dict[str, wiring.Member]:
    """Of LaneRows, towards SBUF, and of rows in shared memory."""
    return {
        **{f"shared_{name}": member for name, member in shared_rows_ports(cfg).items()},
        "lane_valid": Out(1),
        "lane_request": Out(lane_request(cfg)),
        "lane_ready": In(1),
        "lane_reply": In(64 * lanes(cfg.partitions)),
        "lane_moved": Out(MOVED_BITS),
    }


class Tile(wiring.Component):
    """Runs from `entry` on while `run` is 1, with registers at 0; a cycle without it must be in front.

    o, with reply, reply_valid: loads and stores that local memory does not answer, an answer to each load. tohost: a
    store there, if it is not 0, whose bit 0 is 1 is an end. ended, with `result`: that; lost, with `cause` and `pc`: a
    trap while mtvec is 0, or of the first instruction of a handler (those of the first trap). Else `pc` is that of what
    asks at `o`. The end of `run` is for others to do: at the end of that cycle, so that nothing behind it executes.
    row_en, without `run`: row `row` of local memory becomes `row_data`; line_en, without it or while `o` has a store:
    that row is read, before code, and `line` has it in the next cycle. waits: asleep; the clock may stop while
    `pending` is 0. state: ScalarCore's; retires: an instruction; moves: how many passes, rows and elements of the
    vector unit. Of a tile with vectors lane_*: LaneRows' way to SBUF, shared_*: rows of shared memory.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.lanes = lanes(cfg.partitions)
        rows = cfg.gpsimd.local_bytes // (4 * self.lanes)
        super().__init__(
            {
                "run": In(1),
                "entry": In(32),
                "tohost": In(32),
                "hart": In(3),
                "mtime": In(64),
                "pending": In(2),
                "o": Out(stream.Signature(DEVICE)),
                "reply": In(32),
                "reply_valid": In(1),
                "row_en": In(1),
                "line_en": In(1),
                "row": In(exact_log2(rows)),
                "row_data": In(32 * self.lanes),
                "line": Out(32 * self.lanes),
                "waits": Out(1),
                "state": Out(4),
                "retires": Out(1),
                "moves": Out(2),
                "ended": Out(1),
                "result": Out(32),
                "lost": Out(1),
                "cause": Out(5),
                "pc": Out(32),
                **(lane_ports(cfg) if cfg.gpsimd.vectors else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        local_bytes = cfg.gpsimd.local_bytes
        local_bits = exact_log2(local_bytes)
        line_bits = exact_log2(4 * self.lanes)
        run = self.run
        m.submodules.core = core = ResetInserter(~run)(ScalarCore(32 * self.lanes, vectors=cfg.gpsimd.vectors))
        m.submodules.memory = memory = LocalMemory(self.lanes, local_bytes)
        m.submodules.reach = reach = Reach(cfg)
        access = core.access.payload
        word, local, loaded, begins = Signal(), Signal(), Signal(), Signal()
        mtime = Signal(64)  # a cycle old: a core that sleeps has no input that changes with the root clock
        m.d.sync += [begins.eq(~run), loaded.eq(memory.word_en), mtime.eq(self.mtime)]
        m.d.comb += [
            core.start.eq(begins),
            core.entry.eq(self.entry),
            core.hart.eq(self.hart),
            core.mtime.eq(mtime),
            core.pending.eq(self.pending << 1),
            reach.i.eq(access),
            core.access_allowed.eq(reach.allowed),
            local.eq(reach.place == Place.LOCAL),
            core.access.ready.eq(local | self.o.ready),
            self.o.valid.eq(core.access.valid & ~local & run),
            self.o.payload.place.eq(reach.place),
            self.o.payload.access.eq(access),
            word.eq(core.access.valid & local & run),
            memory.word_en.eq(word & ~access.write),
            memory.word_address.eq(access.address[2:]),
            memory.store_en.eq(word & access.write),
            memory.store_address.eq(access.address[2:]),
            memory.store_mask.eq(access.mask),
            memory.store_data.eq(access.data),
            core.access_reply.eq(Mux(loaded, memory.word, self.reply)),
            core.access_reply_valid.eq(loaded | self.reply_valid),
            self.waits.eq(core.waits),
            self.state.eq(core.state),
        ]

        # code, and vectors by rows: a row is a line; a load goes first
        asks, read, inside = Signal(), Signal(), Signal()
        number = core.line.payload
        m.d.comb += [
            inside.eq(in_local(Cat(Const(0, line_bits), number), local_bytes)),
            core.line.ready.eq(~memory.word_en & ~self.line_en),
            asks.eq(core.line.valid & core.line.ready & run),
            memory.line_en.eq(asks | self.line_en),
            memory.line_row.eq(Mux(self.line_en, self.row, number)),
            memory.row_en.eq(self.row_en),
            memory.row.eq(self.row),
            memory.row_data.eq(self.row_data),
            memory.row_mask.eq(-1),
            self.line.eq(memory.line),
            core.reply.eq(memory.line),
            core.reply_valid.eq(read),
        ]
        m.d.sync += [read.eq(asks), core.reply_fault.eq(~inside)]

        # ends
        ends_here = (self.tohost != 0) & in_local(self.tohost, local_bytes)
        offset = self.tohost[:local_bits] >> 2
        if cfg.gpsimd.vectors:
            self._rows(m, core, memory, ends_here)
        trapped, again = core.trapped, Signal()
        cause, pc = Signal(5), Signal(32)  # of the trap that was taken last
        bytes_ = Cat(bit.replicate(8) for bit in access.mask)
        m.d.comb += [
            self.ended.eq(
                memory.store_en & ends_here & (access.address[2:local_bits] == offset) & access.mask[0] & access.data[0]
            ),
            self.result.eq((access.data & bytes_) >> 1),
            self.moves.eq(Mux(run, core.moves, 0)),
            self.retires.eq((core.state == Counter.BUSY) & ~trapped.valid & run),
            self.lost.eq(trapped.valid & (trapped.nowhere | again)),
            self.cause.eq(Mux(again, cause, trapped.cause)),
            self.pc.eq(Mux(trapped.valid & again, pc, trapped.pc)),
        ]
        with m.If(trapped.valid):
            m.d.sync += [again.eq(1), cause.eq(trapped.cause), pc.eq(trapped.pc)]
        with m.If(~run | self.retires):
            m.d.sync += again.eq(0)
        return m

    def _rows(self, m: Module, core: ScalarCore, memory: LocalMemory, ends_here: Value) -> None:
        """Rows of the vector unit, local ones before code and behind words. A span that a store to tohost could be in
        is gone through by elements."""
        cfg = self.cfg
        local_bytes = cfg.gpsimd.local_bytes
        words = slice(2, exact_log2(local_bytes))
        rows, end = core.rows, self.tohost[words]
        first, last = rows.span_first, rows.span_last
        with_end = ends_here & (first[words] <= end) & (end <= last[words])
        inside = in_local(first, local_bytes) & in_local(last, local_bytes)
        in_order = (first <= last) & (first[REGION_BIT:] == last[REGION_BIT:])
        in_lanes, in_shared = (first[REGION_BIT:] == of >> REGION_BIT for of in (Region.SBUF_LANES, Region.SHARED))
        of_sbuf = in_lanes & (last[:REGION_BIT] < cfg.sbuf.partition_bytes * self.lanes) & ~rows.span_narrow
        of_shared = in_shared & (last[:REGION_BIT] < SHARED_BYTES)
        region = REGION_BIT - exact_log2(4 * self.lanes)  # of a row's number
        line_shared, row_shared = (
            beyond & (row[region:] == Region.SHARED >> REGION_BIT)
            for beyond, row in ((rows.line_beyond, rows.line_row), (rows.row_beyond, rows.row))
        )
        from_lanes, from_shared = Signal(), Signal()
        m.d.sync += [from_lanes.eq(rows.line_beyond), from_shared.eq(line_shared)]  # what is there in this cycle
        m.submodules.lane_rows = lane_rows = ResetInserter(~self.run)(LaneRows(cfg))
        m.d.comb += [
            rows.in_rows.eq(in_order & ((inside & ~with_end) | of_sbuf | of_shared)),
            rows.beyond.eq(in_lanes | in_shared),
            lane_rows.line_en.eq(rows.line_en & rows.line_beyond & ~line_shared),
            lane_rows.line_row.eq(rows.line_row),
            lane_rows.row_en.eq(rows.row_en & rows.row_beyond & ~row_shared),
            lane_rows.row.eq(rows.row),
            lane_rows.row_data.eq(rows.row_data),
            lane_rows.row_mask.eq(rows.row_mask),
            lane_rows.row_last.eq(rows.row_last),
            rows.line_ready.eq(
                Mux(
                    line_shared,
                    self.shared_line_ready,
                    Mux(rows.line_beyond, lane_rows.line_ready, ~memory.word_en),
                )
            ),
            rows.line.eq(Mux(from_shared, self.shared_line, Mux(from_lanes, lane_rows.line, memory.line))),
            rows.row_ready.eq(Mux(row_shared, self.shared_row_ready, ~rows.row_beyond | lane_rows.row_ready)),
            self.shared_line_en.eq(rows.line_en & line_shared & self.run),
            self.shared_line_row.eq(rows.line_row),
            self.shared_row_en.eq(rows.row_en & row_shared & self.run),
            self.shared_row.eq(rows.row),
            self.shared_row_data.eq(rows.row_data),
            self.shared_row_mask.eq(rows.row_mask),
            self.lane_valid.eq(lane_rows.valid & self.run),
            self.lane_request.eq(lane_rows.request),
            lane_rows.ready.eq(self.lane_ready),
            lane_rows.reply.eq(self.lane_reply),
            self.lane_moved.eq(Mux(from_shared, 0, rows.line_moved) + Mux(row_shared, 0, rows.row_moved)),
        ]
        with m.If(rows.line_en & ~rows.line_beyond):
            m.d.comb += [core.line.ready.eq(0), memory.line_en.eq(1), memory.line_row.eq(rows.line_row)]
        with m.If(rows.row_en & ~rows.row_beyond):
            m.d.comb += [
                memory.row_en.eq(1),
                memory.row.eq(rows.row),
                memory.row_data.eq(rows.row_data),
                memory.row_mask.eq(rows.row_mask),
            ]

        # words of local memory, also before code
        m.submodules.lookup = lookup = LocalLookup(self.lanes, len(memory.row))
        m.d.comb += [
            lookup.en.eq(Mux(self.run, rows.look_en, 0)),
            lookup.address.eq(rows.look_address),
            lookup.inside.eq(
                Cat(in_local(rows.look_address.word_select(n, 32), local_bytes) for n in range(self.lanes))
            ),
            lookup.has_kept_word.eq(ends_here),
            lookup.kept_word.eq(end),
            lookup.data.eq(rows.look_data),
            lookup.line.eq(memory.line),
            rows.look_allowed.eq(lookup.allowed),
            rows.look_ready.eq(lookup.ready),
            rows.look_found.eq(lookup.found),
            memory.bank_en.eq(lookup.bank_en),
            memory.bank_write.eq(rows.look_write),
            *(own.eq(row) for own, row in zip(memory.bank_row, lookup.bank_row, strict=True)),
            memory.bank_data.eq(lookup.bank_data),
        ]
        with m.If(rows.look_en.any()):
            m.d.comb += core.line.ready.eq(0)
