"""Where every cycle of every GPSIMD core went."""

from amaranth.hdl import Module, Mux, Signal, Value
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
_SUMS = {"instructions": Counter.INSTRUCTIONS, "passes": Counter.MICRO_OPS, "moved": Counter.BYTES}


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
        # as cores see it, who look at it when both have stood still for a while
        asleep_then, stale_then = Signal.like(asleep), Signal.like(stale)
        m.d.sync += [asleep_then.eq(asleep), stale_then.eq(stale)]
        known_told, state_told = Signal(_STATES), Signal(TIME_BITS)
        sums_told = [Signal(TIME_BITS, name=f"{name}_told") for name in _SUMS]
        for k in range(self.cores):
            m.submodules[f"core_{k}"] = memory = Memory(shape=TIME_BITS, depth=_STATES, init=[])
            write, old = memory.write_port(), memory.read_port(domain="comb")
            own, host = (memory.read_port(domain="comb") for _ in range(2))
            counted, known = Signal(_STATES), Signal(_STATES)
            sums = [Signal(TIME_BITS, name=f"{name}_{k}") for name in _SUMS]
            m.d.comb += [
                known.eq(Mux(stale, 0, counted)),
                write.addr.eq(self.state[k]),
                write.en.eq(goes),
                old.addr.eq(self.state[k] ^ fault("a counter of a core goes on from the one beside")),
                write.data.eq(Mux(known.bit_select(self.state[k], 1), old.data, 0) + 1),
                own.addr.eq(self.index[k]),
                host.addr.eq(self.told_index),
            ]
            with m.If(goes):
                m.d.sync += counted.eq(known | (1 << self.state[k])[:_STATES])
                more = (self.retires[k], self.moves[k], self.bytes[k])
                m.d.sync += [total.eq(Mux(stale, 0, total) + one) for total, one in zip(sums, more, strict=True)]
            known_then = Mux(stale_then, 0, counted)
            self._read(m, self.value[k], self.index[k], own.data, known_then, asleep_then, sums, stale_then)
            with m.If(self.told_core == k):  # whose they are first: one is told, of all cores
                m.d.comb += [known_told.eq(known), state_told.eq(host.data)]
                m.d.comb += [told.eq(of_core) for told, of_core in zip(sums_told, sums, strict=True)]
        with m.If(self.told_core < self.cores):
            self._read(m, self.told, self.told_index, state_told, known_told, asleep, sums_told, stale)
        return m

    @staticmethod
    def _read(
        m: Module,
        value: Value,
        index: Value,
        state: Value,
        known: Value,
        asleep: Value,
        sums: list[Signal],
        stale: Value,
    ) -> None:
        """Counter `index` of a core, whose RAM has `state` there."""
        counted = Mux(known.bit_select(index, 1), state, 0)
        with m.Switch(index):
            with m.Case(Counter.IDLE):
                m.d.comb += value.eq(counted + asleep)
            for counter, total in zip(_SUMS.values(), sums, strict=True):
                with m.Case(counter):
                    m.d.comb += value.eq(Mux(stale, 0, total))
            with m.Default():
                m.d.comb += value.eq(Mux(index < _STATES, counted, 0))
