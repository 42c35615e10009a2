"""The scalar engine with its clock: the ratio of the configuration, gated by activity."""

from amaranth.hdl import Module, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.clock_gate import ClockGate, gated_domain
from rtl.base.clock_ratio import ClockRatio
from rtl.base.dispatch import EngineSignature
from rtl.base.memory_port import PsumReadSignature, PsumWriteSignature, SbufReadSignature, SbufWriteSignature
from rtl.contract.config import Config
from rtl.scalar.engine import ScalarEngine

__all__ = ["ClockedScalar"]


class ClockedScalar(wiring.Component):
    """ScalarEngine on a clock of its own: an edge at the ticks of the ratio while there is work.

    `tick` shows the cycles that end with one.
    """

    FAULTS = ScalarEngine.FAULTS

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
        m.submodules.ratio = ratio = ClockRatio.of_mhz(cfg.scalar.clock_mhz, cfg.tensor.clock_mhz)
        m.submodules.gate = gate = ClockGate()
        m.submodules.engine = engine = ScalarEngine(cfg, plant=self.plant)
        gated_domain(m, "scalar", gate)
        connect(m, flipped(self.queue), engine.queue)
        for name in ("sbuf_read", "sbuf_write", "psum_read", "psum_write"):
            connect(m, getattr(engine, name), flipped(getattr(self, name)))
        m.d.comb += [
            self.tick.eq(ratio.tick & (engine.active | self.queue.command.valid)),
            gate.enable.eq(self.tick),
            engine.tick.eq(self.tick),
        ]
        return m
