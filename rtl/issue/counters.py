"""Where every cycle of every engine went."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import EngineStatusSignature
from rtl.base.fault import fault
from rtl.base.trace import STATE_BITS
from rtl.contract.config import Config
from rtl.contract.timing import STALLS, Engine

__all__ = ["COUNTER_BITS", "QUEUE_STATE", "Counters", "counter_index"]

COUNTER_BITS = 48
BUSY = 0
IDLE = 1
STALL = 2

QUEUE_STATE = data.StructLayout({"halted": 1, "semaphore": 1, "fetch": 1})
"""What the queue of an engine says. The DMA has none: all 0."""


def counter_index(engine: Engine, state: int) -> int:
    """Place of a counter in Counters.values; state 0 busy, 1 idle, 2 and on timing.STALLS."""
    return sum(STALL + len(STALLS[e]) for e in Engine if e < engine) + state


class Counters(wiring.Component):
    """Exactly one counter of each engine goes up in each cycle with `running`, so they sum to `cycles`.

    In order: a halted queue and an engine that holds nothing: fault. An engine that holds an
    instruction: what it says. The queue waits for a semaphore, then for fetch. The engine drains. Idle.
    `states`: which one, of each engine, for traces.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        total = counter_index(Engine.DMA, STALL + len(STALLS[Engine.DMA]))
        super().__init__(
            {
                "clear": In(1),
                "running": In(1),
                "status": In(EngineStatusSignature()).array(len(Engine)),
                "queue": In(QUEUE_STATE).array(len(Engine)),
                "values": Out(COUNTER_BITS).array(total),
                "cycles": Out(COUNTER_BITS),
                "states": Out(STATE_BITS * len(Engine)),
            }
        )

    def _choose(self, m: Module, engine: Engine) -> Signal:
        """Number of the state that this cycle belongs to."""
        status = self.status[engine]
        queue = self.queue[engine]
        stalls = STALLS[engine]
        state = Signal(STATE_BITS, init=IDLE, name=f"state_{engine.name.lower()}")

        def stall(name: str) -> int:
            return STALL + stalls.index(name)

        with m.If(
            status.holds
            & ~(fault("an engine that holds an instruction counts while the queue waits") & queue.semaphore)
        ):
            m.d.comb += state.eq(status.state)
        if engine != Engine.DMA:
            with m.Elif(queue.halted):
                m.d.comb += state.eq(stall("fault"))
            with m.Elif(queue.semaphore):
                m.d.comb += state.eq(stall("semaphore"))
            with m.Elif(queue.fetch):
                m.d.comb += state.eq(stall("fetch"))
        if "drain" in stalls:
            with m.Elif(status.draining & ~fault("a draining engine counts as idle")):
                m.d.comb += state.eq(stall("drain"))
        return state

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for engine in Engine:
            state = self._choose(m, engine)
            told = fault("the state of an engine is told as the one beside it")
            m.d.comb += self.states.word_select(engine, STATE_BITS).eq(state ^ told)
            last = Signal.like(state, name=f"last_{engine.name.lower()}", init=0)
            m.d.sync += last.eq(state)
            lost = fault("idle cycles after a busy one are not counted") & (last == BUSY) & (state == IDLE)
            with m.If(self.running & ~lost), m.Switch(state):
                for n in range(STALL + len(STALLS[engine])):
                    value = self.values[counter_index(engine, n)]
                    with m.Case(n):
                        m.d.sync += value.eq(value + 1)
        with m.If(self.running):
            m.d.sync += self.cycles.eq(self.cycles + 1)
        with m.If(self.clear):
            m.d.sync += [value.eq(0) for value in self.values]
            m.d.sync += self.cycles.eq(0)
        return m
