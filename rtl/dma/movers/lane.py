"""Lane of a mover: moves rows, 16 bytes a cycle, for its group of partitions. Connects its parts."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.base.fifo import Fifo, RamFifo
from rtl.base.limits import limit_ports
from rtl.base.memory_port import SbufMoverSignature
from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd
from rtl.contract.timing import DMA_ROWS_IN_FLIGHT
from rtl.dma.layouts import ADDED_ROWS, ar_burst, done_layout, fetch_layout, row_layout
from rtl.dma.movers.aligner import Aligner
from rtl.dma.movers.reader import Reader
from rtl.dma.movers.remote import Remote
from rtl.dma.movers.sequencer import Sequencer
from rtl.dma.movers.writer import Writer

__all__ = ["LANE_COUNTS", "Lane"]

LANE_COUNTS = {name: Out(1) for name in ("moves", "sbuf_refused", "reading", "writing", "committing")}
"""What it tells the counters in each cycle."""

ROWS_FROM_SBUF = 16
"""Rows from SBUF that are planned, at most: they need no time to be asked for, and more would be chosen too early."""


class Lane(wiring.Component):
    """Rows of any kind, in their order, through one aligner; reads from HBM run ahead.

    `index`: which mover this is a lane of. `limit_*`: see Reader and Writer.
    `sbuf`: the port of its partitions.
    `ask`, `answer_*`: 16-byte units of other movers' partitions; `serve_*`: the same for the others, before
    its own reads (the data are on the port in the cycle after `serve_ready`).
    `read`, `beat_*`: bursts from HBM and their beats, never refused; `write`, `w_*`, `b_*`: bursts to HBM.
    `done`: rows whose last write has committed: SBUF took it, or told that the last sum is there, or HBM answered. SBUF
    tells that of rows in their order; ADDED_ROWS may wait for it.
    For the counters: `moves` a step was made, `sbuf_refused`, `reading` beats are awaited, `writing` beats
    wait to be sent, `committing` answers are awaited.
    Timing: 16 bytes every cycle over any sequence of rows whose data are there.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        port = cfg.hbm.port_bytes
        super().__init__(
            {
                **limit_ports(cfg, "buffer_bytes", "burst_bytes"),
                "index": In(4),
                "row": In(stream.Signature(row_layout(cfg))),
                "sbuf": Out(SbufMoverSignature(cfg)),
                "ask": Out(stream.Signature(fetch_layout(cfg))),
                "answer_valid": In(1),
                "answer": In(128),
                "serve_valid": In(1),
                "serve_ready": Out(1),
                "serve": In(fetch_layout(cfg)),
                "read": Out(stream.Signature(ar_burst(cfg))),
                "beat_valid": In(1),
                "beat_data": In(8 * port),
                "beat_error": In(1),
                "write": Out(stream.Signature(ar_burst(cfg))),
                "w_valid": Out(1),
                "w_data": Out(8 * port),
                "w_strobe": Out(port),
                "w_take": In(1),
                "b_valid": In(1),
                "b_error": In(1),
                "b_ready": Out(1),
                "done": Out(stream.Signature(done_layout(cfg))),
                **LANE_COUNTS,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        row = row_layout(cfg)
        m.submodules.planned = planned_rows = RamFifo(row, DMA_ROWS_IN_FLIGHT)
        m.submodules.reader = reader = Reader(cfg)
        m.submodules.remote = remote = Remote(cfg)
        m.submodules.sequencer = sequencer = Sequencer(cfg)
        m.submodules.aligner = aligner = Aligner(cfg)
        m.submodules.writer = writer = Writer(cfg)

        planned = Signal(range(ROWS_FROM_SBUF + 1))  # rows from SBUF that are
        waits = Signal()  # what is chosen too early is not chosen by class
        m.d.comb += [
            waits.eq(self.row.payload.from_sbuf & (planned == ROWS_FROM_SBUF)),
            reader.row.valid.eq(self.row.valid & ~waits),
            reader.row.payload.eq(self.row.payload),
            self.row.ready.eq(reader.row.ready & ~waits),
        ]
        enters = self.row.valid & self.row.ready & self.row.payload.from_sbuf
        leaves = planned_rows.o.valid & planned_rows.o.ready & planned_rows.o.payload.from_sbuf
        m.d.sync += planned.eq(planned + enters - leaves)
        connect(m, reader.planned, planned_rows.i)
        connect(m, planned_rows.o, sequencer.row)
        connect(m, reader.burst, flipped(self.read))
        connect(m, remote.request, flipped(self.ask))
        connect(m, writer.burst, flipped(self.write))

        # Sources. A unit of another mover is taken with its step and used in the next cycle, like the others.
        other = Signal(128)
        with m.If(sequencer.other_take):
            m.d.sync += other.eq(remote.unit.payload)
        m.d.comb += [
            reader.limit_buffer_bytes.eq(self.limit_buffer_bytes),
            reader.limit_burst_bytes.eq(self.limit_burst_bytes),
            writer.limit_burst_bytes.eq(self.limit_burst_bytes),
            reader.beat_valid.eq(self.beat_valid),
            reader.beat_data.eq(self.beat_data),
            reader.beat_error.eq(self.beat_error),
            reader.take.eq(sequencer.beat_take),
            remote.start.eq(sequencer.other_start),
            remote.first.eq(sequencer.fetch),
            remote.count.eq(sequencer.other_count),
            remote.answer_valid.eq(self.answer_valid),
            remote.answer.eq(self.answer),
            remote.unit.ready.eq(sequencer.other_take),
            sequencer.index.eq(self.index),
            sequencer.beat_there.eq(reader.level != 0),
            sequencer.own_ready.eq(self.sbuf.read_ready & ~self.serve_valid),
            sequencer.other_valid.eq(remote.unit.valid),
            sequencer.room.eq(aligner.room),
            self.sbuf.read_valid.eq(self.serve_valid | sequencer.own_valid),
            self.sbuf.read_lane.eq(Mux(self.serve_valid, self.serve.lane, sequencer.fetch.lane)),
            self.sbuf.read_pair.eq(Mux(self.serve_valid, self.serve.pair, sequencer.fetch.pair)),
            self.serve_ready.eq(self.sbuf.read_ready),
            aligner.step_valid.eq(sequencer.step_valid),
            aligner.step.eq(sequencer.step),
            aligner.beat.eq(reader.data),
            aligner.beat_error.eq(reader.error),
            aligner.own.eq(self.sbuf.read_data),
            aligner.other.eq(other),
        ]

        # Destinations. A row to SBUF is done when its last unit is taken, or if it is added when the last sum is there.
        m.submodules.stored = stored = Fifo(done_layout(cfg), 2)
        unit = aligner.unit
        writes = Signal()
        room = Signal()
        takes = Signal()  # SBUF takes the last unit of a row
        stores = Signal()  # which is no sum
        tells = Signal()  # a row is done whose last sum is in SBUF
        m.d.comb += [
            room.eq(stored.i.ready),
            writes.eq(unit.valid & unit.payload.to_sbuf & room),
            takes.eq(writes & self.sbuf.write_ready & unit.payload.last),
            stores.eq(takes),
            self.sbuf.write_valid.eq(writes),
            self.sbuf.write_lane.eq(unit.payload.to[14:]),
            self.sbuf.write_pair.eq(unit.payload.to),
            self.sbuf.write_data.eq(unit.payload.data),
            self.sbuf.write_bytes.eq(unit.payload.bytes),
            self.sbuf.write_add.eq(unit.payload.add),
            self.sbuf.write_last.eq(unit.payload.last),
            writer.unit.valid.eq(unit.valid & ~unit.payload.to_sbuf),
            writer.unit.payload.eq(unit.payload),
            unit.ready.eq(Mux(unit.payload.to_sbuf, writes & self.sbuf.write_ready, writer.unit.ready)),
            stored.i.valid.eq(stores),
            stored.i.payload.slot.eq(unit.payload.slot),
            stored.i.payload.read_error.eq(unit.payload.read_error),
            self.w_valid.eq(writer.w_valid),
            self.w_data.eq(writer.w_data),
            self.w_strobe.eq(writer.w_strobe),
            writer.w_take.eq(self.w_take),
            writer.b_valid.eq(self.b_valid),
            writer.b_error.eq(self.b_error),
            self.b_ready.eq(writer.b_ready),
        ]
        m.d.comb += [
            self.done.valid.eq(stored.o.valid | tells | writer.done.valid),
            self.done.payload.eq(writer.done.payload),
            stored.o.ready.eq(self.done.ready & ~tells),
            writer.done.ready.eq(self.done.ready & ~stored.o.valid & ~tells),
        ]
        with m.If(stored.o.valid):
            m.d.comb += self.done.payload.eq(stored.o.payload)
        if cfg.sbuf.adders:
            self._sums(m, unit, takes, room, stores, tells)
        m.d.comb += [
            self.moves.eq(sequencer.moves),
            self.sbuf_refused.eq((self.sbuf.read_valid & ~self.sbuf.read_ready) | (writes & ~self.sbuf.write_ready)),
            self.reading.eq(reader.outstanding),
            self.writing.eq(writer.buffered),
            self.committing.eq(writer.unanswered),
        ]
        return m

    def _sums(
        self,
        m: Module,
        unit: stream.Interface,
        takes: Signal,
        room: Signal,
        stores: Signal,
        tells: Signal,
    ) -> None:
        """Rows of sums wait until their last one is in SBUF, and are told before others."""
        m.submodules.added = added = Fifo(done_layout(self.cfg), ADDED_ROWS)
        adds = Signal()
        early = fault("a row is done before its last sum is in SBUF")
        there = Signal(range(ADDED_ROWS + 1))  # of the rows in `added`, those whose last sum is in SBUF
        m.d.comb += [
            adds.eq(unit.payload.add != DmaAdd.COPY),
            added.i.valid.eq(takes & adds & ~early),
            added.i.payload.slot.eq(unit.payload.slot),
            added.i.payload.read_error.eq(unit.payload.read_error),
            added.o.ready.eq(self.done.ready & (there != 0)),
            tells.eq(added.o.valid & (there != 0)),
        ]
        with m.If(adds):
            m.d.comb += [room.eq(added.i.ready), stores.eq(takes & early)]
        with m.If(tells):
            m.d.comb += self.done.payload.eq(added.o.payload)
        m.d.sync += there.eq(there + self.sbuf.write_done - (tells & added.o.ready))
