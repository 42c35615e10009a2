"""The semaphores of a core: counters that queues wait for and that finished work changes."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import RoundRobin
from rtl.base.dma_port import SEMAPHORE_INDEX_BITS, SEMAPHORE_UPDATE
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.isa import Update

__all__ = ["Semaphores"]


class Semaphores(wiring.Component):
    """issue.semaphores values of 32 bits, signed, wrapping around; all 0 after reset and after `clear`.

    Timing: `value{r}` is the semaphore `index{r}`, combinational. Writers are served one a cycle, in
    turn; an update is seen in the cycle after it was accepted. An index that does not exist reads the
    one modulo the number of semaphores: issue and DMA refuse it before.
    """

    def __init__(self, cfg: Config, readers: int, writers: int):
        self.cfg = cfg
        self.readers = readers
        self.writers = writers
        super().__init__(
            {
                "clear": In(1),
                "index": In(SEMAPHORE_INDEX_BITS).array(readers),
                "value": Out(signed(32)).array(readers),
                "update": In(stream.Signature(SEMAPHORE_UPDATE)).array(writers),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self.cfg.issue.semaphores
        m.submodules.turn = turn = RoundRobin(self.writers)
        m.submodules.values = values = Memory(shape=signed(32), depth=count, init=[])
        valid = Signal(count)  # others are 0: clearing takes one cycle
        write = values.write_port()

        for r in range(self.readers):
            read = values.read_port(domain="comb")
            index = Signal(range(count), name=f"index_{r}")
            m.d.comb += [
                index.eq(self.index[r]),
                read.addr.eq(index),
                self.value[r].eq(Mux(valid.bit_select(index, 1), read.data, 0)),
            ]

        chosen = Signal(SEMAPHORE_UPDATE)
        old_read = values.read_port(domain="comb")
        old = Signal(signed(32))
        index = Signal(range(count))
        requests = Signal(self.writers)
        m.d.comb += [
            requests.eq(Cat(update.valid for update in self.update)),
            turn.requests.eq(requests),
            turn.accept.eq(1),
        ]
        for w in range(self.writers):
            m.d.comb += self.update[w].ready.eq(
                turn.grant[w]
                | (fault("an update of a semaphore that has to wait for another one is lost") & requests[w])
            )
            with m.If(turn.grant[w]):
                m.d.comb += chosen.eq(self.update[w].payload)
        set_ = (chosen.update == Update.SET) & ~fault("a set of a semaphore adds")
        skip = fault("a decrement of a semaphore is not done") & (chosen.value < 0)
        m.d.comb += [
            index.eq(chosen.index),
            old_read.addr.eq(index),
            old.eq(Mux(valid.bit_select(index, 1) & ~set_, old_read.data, 0)),
            write.addr.eq(index),
            write.data.eq(old + chosen.value),
            write.en.eq(requests.any() & ~skip),
        ]
        with m.If(write.en):
            m.d.sync += valid.bit_select(index, 1).eq(1)
        with m.If(self.clear):
            m.d.sync += valid.eq(0)
        return m
