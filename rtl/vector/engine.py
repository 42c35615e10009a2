"""The vector engine: connects reader, lanes and writer, and bridges them to the root clock."""

from amaranth.hdl import Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from rtl.base.element_writer import ElementWriter
from rtl.base.engine_frame import EngineFrame, engine_ports
from rtl.base.fault import fault
from rtl.base.limits import limit_ports
from rtl.contract.config import Config
from rtl.vector.lanes import DOMAINS, Lanes
from rtl.vector.reader import RESULTS, Reader

__all__ = ["VectorEngine", "VectorPipeline"]

LIMITS = ("exp_rate_log2",)


class VectorPipeline(wiring.Component):
    """Everything that runs on the engine's own clock, which is its "sync"."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        limit = limit_ports(cfg, *LIMITS)
        super().__init__({**engine_ports(cfg), **limit, "active": Out(1), "clocks": Out(len(DOMAINS))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = Reader(self.cfg)
        m.submodules.lanes = lanes = Lanes(self.cfg, RESULTS)
        m.submodules.writer = writer = ElementWriter(self.cfg, RESULTS, masked=True)
        # of MX elements: at most 16 pairs of columns are on their way, so 8 groups of four scales
        m.submodules.scales = scales = ElementWriter(self.cfg, RESULTS // 2, masked=True)
        m.d.comb += reader.limit_exp_rate_log2.eq(self.limit_exp_rate_log2)
        connect(m, flipped(self.queue.command), reader.command)
        connect(m, reader.writer, writer.command)
        connect(m, reader.scales, scales.command)
        connect(m, reader.sbuf, flipped(self.sbuf_read))
        connect(m, reader.psum, flipped(self.psum_read))
        # scales go first: those of an instruction are written when its last element is
        first = scales.sbuf.valid & ~fault("elements of MX blocks go before their scales")
        for name in ("quadrants", "word", "data", "bytes", "partitions"):
            m.d.comb += Value.cast(getattr(self.sbuf_write, name)).eq(
                Mux(first, Value.cast(getattr(scales.sbuf, name)), Value.cast(getattr(writer.sbuf, name)))
            )
        m.d.comb += [
            self.sbuf_write.valid.eq(scales.sbuf.valid | writer.sbuf.valid),
            scales.sbuf.ready.eq(self.sbuf_write.ready & (first | ~writer.sbuf.valid)),
            writer.sbuf.ready.eq(self.sbuf_write.ready & ~first),
            scales.result.eq(lanes.scales),
            scales.chosen.eq(lanes.scale_lanes),
            scales.result_valid.eq(lanes.scales_valid),
        ]
        connect(m, writer.psum, flipped(self.psum_write))
        m.d.comb += [
            lanes.element.eq(reader.element),
            lanes.plan.eq(reader.plan),
            lanes.partitions.eq(reader.partitions),
            lanes.mask.eq(reader.mask),
            lanes.begins.eq(reader.begins),
            lanes.granted.eq(reader.granted),
            lanes.sbuf.eq(self.sbuf_read.data),
            lanes.psum.eq(self.psum_read.data),
            lanes.written.eq(writer.written),
            writer.result.eq(lanes.out),
            writer.chosen.eq(lanes.chosen),
            writer.result_valid.eq(lanes.out_valid),
            reader.written.eq(writer.written),
            reader.writing.eq(writer.busy | scales.busy),
            reader.working.eq(lanes.working),
            reader.release.eq(lanes.release),
            reader.room.eq(lanes.room),
            self.clocks.eq(lanes.clocks),
            self.active.eq(reader.busy | writer.busy | scales.busy | lanes.working),
            self.queue.done.eq(writer.done),
            self.queue.status.holds.eq(reader.holds),
            self.queue.status.state.eq(reader.state),
            self.queue.status.opcode.eq(reader.opcode),
            self.queue.status.draining.eq(writer.busy | scales.busy | lanes.working),
        ]
        return m


class VectorEngine(EngineFrame):
    """All instructions of the vector queue. `clocks`: which of lanes.DOMAINS need the edges of "vector" too.

    docs/vector-engine.md has the timing.
    """

    def __init__(self, cfg: Config):
        pipeline = VectorPipeline(cfg)
        mhz = cfg.vector.clock_mhz
        super().__init__(cfg, pipeline, domain="vector", clock_mhz=mhz, part_domains=DOMAINS, limits=LIMITS)
