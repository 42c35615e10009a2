"""Where every cycle of every GPSIMD core went."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.gpsimd import Counter
from rtl.gpsimd.cluster import STATE_BITS
from rtl.gpsimd.layouts import MOVED_BITS
from rtl.gpsimd.waiting import TIME_BITS

__all__ = ["CoreCounters"]

_STATES = Counter.INSTRUCTIONS  # those before it are states


class CoreCounters(wiring.Component):
    """In each cycle with `tick` and `running` one state of each core goes up: IDLE without `active`, else `state`.

    retires: an instruction of a core; moves: passes of its vector unit; bytes: of SBUF for a core. `value[k]`
    is counter `index[k]` of core k, `told` is `told_index` of core `told_core`. They are RAMs, so `known` says which
    have gone up since `clear`. "sync" is the engine's clock, which has an edge at a tick with work, "root" the clock of
    ticks: `stale` says that nothing has been counted at an edge since `clear`.
    """

    def __init__(self, cores: int):
        self.cores = cores
        super().__init__(
            {
                "clear": In(1),
                "running": In(1),
                "tick": In(1),
                "active": In(1),
                "state": In(STATE_BITS).array(cores),
                "retires": In(cores),
                "moves": In(2).array(cores),
                "bytes": In(MOVED_BITS).array(cores),
                "index": In(range(len(Counter))).array(cores),
                "value": Out(TIME_BITS).array(cores),
                "told_core": In(3),
                "told_index": In(5),
                "told": Out(TIME_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        counts = self.tick & self.running
        asleep = Signal(TIME_BITS)  # cycles in which nothing ran
        stale = Signal()
        goes = counts & self.active
        with m.If(counts & ~self.active):
            m.d.root += asleep.eq(asleep + 1)
        with m.If(goes):
            m.d.root += stale.eq(0)
        with m.If(self.clear):
            m.d.root += [asleep.eq(0), stale.eq(~fault("what the last program counted of a core stays"))]
        told: list[Signal] = []
        for k in range(self.cores):
            m.submodules[f"core_{k}"] = memory = Memory(shape=TIME_BITS, depth=_STATES, init=[])
            write, old = memory.write_port(), memory.read_port(domain="comb")
            counted, known = Signal(_STATES), Signal(_STATES)
            instructions, passes, moved = Signal(TIME_BITS), Signal(TIME_BITS), Signal(TIME_BITS)
            m.d.comb += [
                known.eq(Mux(stale, 0, counted)),
                write.addr.eq(self.state[k]),
                write.en.eq(goes),
                old.addr.eq(self.state[k] ^ fault("a counter of a core goes on from the one beside")),
                write.data.eq(Mux(known.bit_select(self.state[k], 1), old.data, 0) + 1),
            ]
            with m.If(goes):
                m.d.sync += [
                    counted.eq(known | (1 << self.state[k])[:_STATES]),
                    instructions.eq(Mux(stale, 0, instructions) + self.retires[k]),
                    passes.eq(Mux(stale, 0, passes) + self.moves[k]),
                    moved.eq(Mux(stale, 0, moved) + self.bytes[k]),
                ]
            told.append(Signal(TIME_BITS, name=f"told_{k}"))
            for place, index, value in (("own", self.index[k], self.value[k]), ("host", self.told_index, told[k])):
                read = memory.read_port(domain="comb")
                state = Signal(TIME_BITS, name=f"{place}_{k}")
                m.d.comb += [read.addr.eq(index), state.eq(Mux(known.bit_select(index, 1), read.data, 0))]
                with m.Switch(index):
                    with m.Case(Counter.IDLE):
                        m.d.comb += value.eq(state + asleep)
                    with m.Case(Counter.INSTRUCTIONS):
                        m.d.comb += value.eq(Mux(stale, 0, instructions))
                    with m.Case(Counter.MICRO_OPS):
                        m.d.comb += value.eq(Mux(stale, 0, passes))
                    with m.Case(Counter.BYTES):
                        m.d.comb += value.eq(Mux(stale, 0, moved))
                    with m.Default():
                        m.d.comb += value.eq(Mux(index < _STATES, state, 0))
        with m.If(self.told_core < self.cores):
            m.d.comb += self.told.eq(Array(told)[self.told_core])
        return m
