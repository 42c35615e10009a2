"""The scalar engine: connects reader, lanes and writer, and bridges them to the root clock."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from rtl.base.element_writer import ElementWriter
from rtl.base.engine_frame import EngineFrame, engine_ports
from rtl.contract.config import Config
from rtl.scalar.lanes import Lanes
from rtl.scalar.loader import Loader
from rtl.scalar.reader import RESULTS, Reader

__all__ = ["ScalarEngine", "ScalarPipeline"]


class ScalarPipeline(wiring.Component):
    """Everything that runs on the engine's own clock, which is its "sync"."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__({**engine_ports(cfg), "active": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = Reader(self.cfg)
        m.submodules.loader = loader = Loader(self.cfg)
        m.submodules.lanes = lanes = Lanes(self.cfg)
        m.submodules.writer = writer = ElementWriter(self.cfg, RESULTS, lane_bytes=4, tails=True)
        connect(m, flipped(self.queue.command), reader.command)
        connect(m, reader.writer, writer.command)
        connect(m, reader.sbuf, flipped(self.sbuf_read))
        connect(m, reader.psum, flipped(self.psum_read))
        connect(m, writer.sbuf, flipped(self.sbuf_write))
        connect(m, writer.psum, flipped(self.psum_write))
        m.d.comb += [
            lanes.element.eq(reader.element),
            lanes.sbuf.eq(self.sbuf_read.data),
            lanes.psum.eq(self.psum_read.data),
            lanes.load_valid.eq(loader.load_valid),
            lanes.load.eq(loader.load),
            loader.start.eq(reader.load),
            loader.partitions.eq(reader.load_partitions),
            loader.valid.eq(reader.element.table),
            loader.last.eq(reader.element.last),
            loader.x.eq(lanes.raw),
            reader.room.eq(loader.room),
            reader.loaded.eq(loader.done),
            writer.result.eq(lanes.out),
            writer.result_valid.eq(lanes.out_valid),
            reader.written.eq(writer.written),
            reader.writing.eq(writer.busy),
            reader.reducing.eq(lanes.reducing),
            self.active.eq(reader.busy | writer.busy | lanes.reducing),
            self.queue.done.eq(writer.done | loader.done),
            self.queue.status.holds.eq(reader.holds),
            self.queue.status.state.eq(reader.state),
            self.queue.status.opcode.eq(reader.opcode),
            self.queue.status.draining.eq(writer.busy),
        ]
        return m


class ScalarEngine(EngineFrame):
    """All instructions of the scalar queue: one element or a pair a lane a scalar cycle. docs/scalar-engine.md has the
    timing."""

    def __init__(self, cfg: Config):
        pipeline = ScalarPipeline(cfg)
        super().__init__(cfg, pipeline, domain="scalar", clock_mhz=cfg.scalar.clock_mhz)
