"""The vector engine with its clock: the ratio of the configuration, gated by activity."""

from amaranth.hdl import Module, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.clock_gate import ClockGate, gated_domain
from rtl.base.clock_ratio import ClockRatio
from rtl.base.dispatch import EngineSignature
from rtl.base.memory_port import PsumReadSignature, PsumWriteSignature, SbufReadSignature, SbufWriteSignature
from rtl.contract.config import Config
from rtl.vector.engine import VectorEngine
from rtl.vector.lanes import DOMAINS

__all__ = ["ClockedVector"]


class ClockedVector(wiring.Component):
    """VectorEngine on a clock of its own: an edge at the ticks of the ratio while there is work.

    `tick` shows the cycles that end with one.
    """

    FAULTS = VectorEngine.FAULTS

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
                "tick": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.ratio = ratio = ClockRatio.of_mhz(cfg.vector.clock_mhz, cfg.tensor.clock_mhz)
        m.submodules.gate = gate = ClockGate()
        m.submodules.engine = engine = VectorEngine(cfg, plant=self.plant)
        gated_domain(m, "vector", gate)
        for n, name in enumerate(DOMAINS):
            m.submodules[f"{name}_gate"] = part = ClockGate()
            gated_domain(m, name, part)
            m.d.comb += part.enable.eq(self.tick & engine.clocks[n])
        connect(m, flipped(self.queue), engine.queue)
        connect(m, engine.sbuf_read, flipped(self.sbuf_read))
        connect(m, engine.sbuf_write, flipped(self.sbuf_write))
        connect(m, engine.psum_read, flipped(self.psum_read))
        connect(m, engine.psum_write, flipped(self.psum_write))
        m.d.comb += [
            self.tick.eq(ratio.tick & (engine.active | self.queue.command.valid)),
            gate.enable.eq(self.tick),
            engine.tick.eq(self.tick),
        ]
        return m
