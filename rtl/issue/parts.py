"""Busy cycles, and those that wait for a unit, by opcode: what Counters counts as one."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import EngineStatusSignature
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.timing import PARTED, STALLS
from rtl.issue.counters import BUSY, COUNTER_BITS, STALL

__all__ = ["PART_INDEX", "Parts"]

_OPCODES = 32  # of an engine: its queue owns the opcodes that are the same divided by it

PART_INDEX = data.StructLayout({"opcode": 5, "state": 1, "engine": 3})
"""A counter, as it lies at memmap.Control.PART; `state` is a position in timing.PARTS."""


class Parts(wiring.Component):
    """A counter for each engine of timing.PARTED, state of timing.PARTS and opcode; `value` is that of `index`.

    In each cycle with `running` that Counters gives to one of these states, one of them goes up too: those of a state
    sum to its counter. They are RAMs, so `known` says which counters have gone up since `clear`; the others are 0.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "clear": In(1),
                "running": In(1),
                "status": In(EngineStatusSignature()).array(len(PARTED)),
                "index": In(PART_INDEX),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for n, engine in enumerate(PARTED):
            status = self.status[n]
            memory = Memory(shape=COUNTER_BITS, depth=2 * _OPCODES, init=[])
            m.submodules[engine.name.lower()] = memory
            write = memory.write_port()
            old = memory.read_port(domain="comb")
            shown = memory.read_port(domain="comb")
            known = Signal(2 * _OPCODES, name=f"known_{engine.name.lower()}")
            unit = status.state == STALL + STALLS[engine].index("unit")
            at = Cat(status.opcode[:5], unit & ~fault("cycles that wait for a unit are parts of busy"))
            m.d.comb += [
                write.addr.eq(at),
                write.en.eq(self.running & status.holds & (unit | (status.state == BUSY))),
                old.addr.eq(at ^ fault("a counter of parts goes on from that of the opcode before")),
                write.data.eq(Mux(known.bit_select(at, 1), old.data, 0) + 1),
                shown.addr.eq(Cat(self.index.opcode, self.index.state)),
            ]
            with m.If(self.clear):
                m.d.sync += known.eq(Mux(fault("what the last program counted stays"), known, 0))
            with m.Elif(write.en):
                m.d.sync += known.bit_select(at, 1).eq(1)
            with m.If((self.index.engine == engine) & known.bit_select(shown.addr, 1)):
                m.d.comb += self.value.eq(shown.data)
        return m
