"""The vector engine: connects reader, lanes and writer, and bridges them to the root clock."""

from amaranth.hdl import DomainRenamer, Module, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.bridge import Bridge
from rtl.base.dispatch import EngineSignature
from rtl.base.memory_port import PsumReadSignature, PsumWriteSignature, SbufReadSignature, SbufWriteSignature
from rtl.base.pattern import PatternWalker
from rtl.contract.config import Config
from rtl.vector.lanes import Lanes
from rtl.vector.reader import Reader
from rtl.vector.writer import Writer

__all__ = ["VectorEngine", "VectorPipeline"]


class VectorPipeline(wiring.Component):
    """Everything that runs on the engine's own clock, which is its "sync"."""

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "queue": In(EngineSignature()),
                "sbuf_read": Out(SbufReadSignature(cfg)),
                "sbuf_write": Out(SbufWriteSignature(cfg)),
                "psum_read": Out(PsumReadSignature(cfg)),
                "psum_write": Out(PsumWriteSignature(cfg)),
                "active": Out(1),
                "computes": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = Reader(self.cfg, plant=self.plant)
        m.submodules.lanes = lanes = Lanes(self.cfg, plant=self.plant)
        m.submodules.writer = writer = Writer(self.cfg, plant=self.plant)
        connect(m, flipped(self.queue.command), reader.command)
        connect(m, reader.writer, writer.command)
        connect(m, reader.sbuf, flipped(self.sbuf_read))
        connect(m, reader.psum, flipped(self.psum_read))
        connect(m, writer.sbuf, flipped(self.sbuf_write))
        m.d.comb += [
            lanes.element.eq(reader.element),
            lanes.instruction.eq(reader.instruction),
            lanes.partitions.eq(reader.partitions),
            lanes.begins.eq(reader.begins),
            lanes.sbuf.eq(self.sbuf_read.data),
            lanes.psum.eq(self.psum_read.data),
            writer.result.eq(lanes.out),
            writer.result_valid.eq(lanes.out_valid),
            reader.written.eq(writer.written),
            reader.writing.eq(writer.busy),
            reader.working.eq(lanes.working),
            reader.release.eq(lanes.release),
            self.computes.eq(lanes.computes),
            self.active.eq(reader.busy | writer.busy | lanes.working),
            self.queue.done.eq(writer.done),
            self.queue.status.holds.eq(reader.holds),
            self.queue.status.state.eq(reader.state),
            self.queue.status.draining.eq(writer.busy | lanes.working),
        ]
        return m


class VectorEngine(wiring.Component):
    """TENSOR_COPY: one element a lane a vector cycle. Ports in the root domain "sync", work in "vector".

    `computes`: the domain lanes.MATHS needs the edges too; while it is 0 elements are only copied.
    `tick` is 1 in the root cycles that end with an edge of "vector"; `active` says that there is work, so
    that the clock may stand still while neither it nor `queue.command.valid` is 1.
    docs/vector-engine.md has the timing.
    """

    FAULTS = {
        **PatternWalker.FAULTS,
        **Bridge.FAULTS,
        **Reader.FAULTS,
        **Lanes.FAULTS,
        **Writer.FAULTS,
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "queue": In(EngineSignature()),
                "sbuf_read": Out(SbufReadSignature(cfg)),
                "sbuf_write": Out(SbufWriteSignature(cfg)),
                "psum_read": Out(PsumReadSignature(cfg)),
                "psum_write": Out(PsumWriteSignature(cfg)),
                "tick": In(1),
                "active": Out(1),
                "computes": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        adjacent = 2 * cfg.vector.clock_mhz > cfg.tensor.clock_mhz
        m.submodules.bridge = bridge = Bridge(cfg, adjacent=adjacent, plant=self.plant)
        pipeline = VectorPipeline(cfg, plant=self.plant)
        m.submodules.pipeline = DomainRenamer("vector")(pipeline)
        connect(m, flipped(self.queue), bridge.queue)
        connect(m, bridge.sbuf_read, flipped(self.sbuf_read))
        connect(m, bridge.sbuf_write, flipped(self.sbuf_write))
        connect(m, bridge.psum_read, flipped(self.psum_read))
        connect(m, bridge.psum_write, flipped(self.psum_write))
        connect(m, bridge.inner_queue, pipeline.queue)
        connect(m, pipeline.sbuf_read, bridge.inner_sbuf_read)
        connect(m, pipeline.sbuf_write, bridge.inner_sbuf_write)
        connect(m, pipeline.psum_read, bridge.inner_psum_read)
        connect(m, pipeline.psum_write, bridge.inner_psum_write)
        m.d.comb += [
            bridge.tick.eq(self.tick),
            bridge.active.eq(pipeline.active),
            self.active.eq(pipeline.active),
            self.computes.eq(pipeline.computes),
        ]
        return m
