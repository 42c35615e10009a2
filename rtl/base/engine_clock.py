"""The clock of an engine: the ratio of the configuration, gated by activity."""

from collections.abc import Sequence

from amaranth.hdl import Module, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.clock_gate import ClockGate, gated_domain
from rtl.base.clock_ratio import ClockRatio
from rtl.base.engine_frame import MEMORY_PORTS, EngineFrame, engine_ports

__all__ = ["ClockedEngine", "clock_engine"]


def clock_engine(
    m: Module, engine: EngineFrame, waiting: ValueLike, prefix: str = "", ratio: Sequence[Value] = ()
) -> Value:
    """Make the clock domains of `engine` in `m`: edges at the ticks of its ratio while it has work or a command is
    `waiting`. Returns the tick. Names of what is made begin with `prefix`. `ratio`: ticks and cycles of its clock, for
    a core with limits."""
    bits = len(ratio[0]) if ratio else 0
    m.submodules[f"{prefix}ratio"] = ticks = ClockRatio.of_mhz(engine.clock_mhz, engine.cfg.tensor.clock_mhz, bits)
    if ratio:
        m.d.comb += [ticks.ticks.eq(ratio[0]), ticks.cycles.eq(ratio[1])]
    tick = ticks.tick & (waiting | engine.active)
    enables = {engine.domain: tick}
    enables |= {name: tick & engine.clocks[n] for n, name in enumerate(engine.part_domains)}
    for name, enable in enables.items():
        m.submodules[f"{name}_gate"] = gate = ClockGate()
        gated_domain(m, name, gate)
        m.d.comb += gate.enable.eq(enable)
    m.d.comb += engine.tick.eq(tick)
    if "edge" in engine.more:
        m.d.comb += engine.edge.eq(ticks.tick)
    return tick


class ClockedEngine(wiring.Component):
    """An engine with its clock, for a bench. `tick` shows the cycles that end with an edge of it."""

    def __init__(self, engine: EngineFrame):
        self._engine = engine
        self._more = {name: member for name, member in engine.more.items() if name != "edge"}
        super().__init__({**engine_ports(engine.cfg), **engine.limit_ports, **self._more, "tick": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.engine = engine = self._engine
        connect(m, flipped(self.queue), engine.queue)
        for name in MEMORY_PORTS:
            connect(m, getattr(engine, name), flipped(getattr(self, name)))
        m.d.comb += [getattr(engine, name).eq(getattr(self, name)) for name in engine.limit_ports]
        for name, member in self._more.items():
            inner, outer = getattr(engine, name), getattr(self, name)
            if member.is_signature:
                connect(m, inner, flipped(outer))
            else:
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        m.d.comb += self.tick.eq(clock_engine(m, engine, self.queue.command.valid))
        return m
