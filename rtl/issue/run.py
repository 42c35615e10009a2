"""Starts a program, says when it is done or has faulted, and measures the whole of it."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import COUNT_BITS, ROW_BYTES_BITS
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.isa import COPY_QUEUES, Queue
from rtl.contract.timing import WINDOWS
from rtl.issue.counters import COUNTER_BITS
from rtl.issue.fetch import fetch_clients

__all__ = ["CLIENT_BITS", "Run"]

CLIENT_BITS = 5


class Run(wiring.Component):
    """Keeps base and count of each fetch client (queues, then rings) and gives them out at the start.

    `run` and `wipe` are ignored while a program runs; one that has faulted or hangs runs until reset. `start` is high
    for one cycle and ends what the last program left; then `load` gives out one client a cycle.
    `clear`: what other cores may have sent is forgotten: with `start`, if `keep` was low with `run`, and the cycle
    after `wipe`.
    `running`, during which counters count, from the cycle after `start` until `done` or `freeze`; the
    program itself goes on after `freeze`. Counts are 0 after reset.
    `first`, `last`: for each of timing.WINDOWS the cycle in which `begins` first and `ends` last was high.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        n = fetch_clients(cfg)
        super().__init__(
            {
                "run": In(1),
                "keep": In(1),  # with `run`
                "wipe": In(1),
                "freeze": In(1),  # counters stop, so that those of a program that hangs can be read
                "write_base": In(1),
                "write_count": In(1),
                "client": In(CLIENT_BITS),  # of a write, and of base and count below
                "write_data": In(64),
                "base": Out(64),
                "count": Out(64),
                "start": Out(1),
                "clear": Out(1),
                "load": Out(1),
                "load_client": Out(CLIENT_BITS),
                "load_base": Out(64),
                "load_count": Out(64),
                "queue_count": Out(COUNT_BITS).array(len(Queue)),
                "finished": In(len(Queue)),
                "faults": In(n),
                "copy_faults": In(len(COPY_QUEUES)),
                "quiet": In(1),  # nothing is on its way but what `finished` knows
                "cycles": In(COUNTER_BITS),
                "begins": In(len(WINDOWS)),
                "ends": In(len(WINDOWS)),
                "hbm_read_bytes": In(ROW_BYTES_BITS + 1),  # a row of the DMA and a beat of fetch
                "hbm_written_bytes": In(ROW_BYTES_BITS),
                "running": Out(1),
                "done": Out(1),
                "fault": Out(1),
                "first": Out(COUNTER_BITS).array(len(WINDOWS)),
                "last": Out(COUNTER_BITS).array(len(WINDOWS)),
                "hbm_read": Out(COUNTER_BITS),
                "hbm_written": Out(COUNTER_BITS),
            }
        )

    def _regions(self, m: Module) -> None:
        """Base and count of each client; a count that was never written is 0."""
        m.submodules.bases = bases = Memory(shape=64, depth=1 << CLIENT_BITS, init=[])
        m.submodules.counts = counts = Memory(shape=64, depth=1 << CLIENT_BITS, init=[])
        known = Signal(1 << CLIENT_BITS)
        for memory, enable in ((bases, self.write_base), (counts, self.write_count)):
            write = memory.write_port()
            m.d.comb += [write.addr.eq(self.client), write.data.eq(self.write_data), write.en.eq(enable)]
        with m.If(self.write_count):
            m.d.sync += known.bit_select(self.client, 1).eq(1)
        for client, base, count in (
            (self.client, self.base, self.count),
            (self.load_client, self.load_base, self.load_count),
        ):
            base_read = bases.read_port(domain="comb")
            count_read = counts.read_port(domain="comb")
            m.d.comb += [base_read.addr.eq(client), base.eq(base_read.data), count_read.addr.eq(client)]
            with m.If(known.bit_select(client, 1)):
                m.d.comb += count.eq(count_read.data)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = fetch_clients(self.cfg)
        self._regions(m)
        active = Signal()
        stopped = Signal()
        idle = Signal()
        m.d.comb += idle.eq(~active & ~self.start)
        wipe = self.wipe | (self.run & (~self.keep | fault("a start that keeps semaphores clears them")))
        m.d.sync += [
            self.start.eq(self.run & idle),
            self.clear.eq(wipe & (idle | fault("semaphores are cleared while a program runs"))),
        ]
        m.d.comb += self.running.eq(active & ~stopped)
        with m.If(self.freeze):
            m.d.sync += stopped.eq(1)
        with m.If(self.start):
            m.d.sync += [
                self.load.eq(1),
                self.load_client.eq(0),
                active.eq(1),
                stopped.eq(0),
                self.done.eq(0),
                self.fault.eq(0),
                self.hbm_read.eq(0),
                self.hbm_written.eq(0),
            ]
            m.d.sync += [count.eq(0) for count in self.queue_count]
        with m.If(self.load):
            m.d.sync += self.load_client.eq(self.load_client + 1)
            with m.If(self.load_client == n - 1):
                m.d.sync += self.load.eq(0)
            for q in Queue:
                with m.If(self.load_client == q):
                    m.d.sync += self.queue_count[q].eq(
                        Mux(self.load_count[COUNT_BITS:].any(), (1 << COUNT_BITS) - 1, self.load_count)
                    )

        # A count beyond 32 bits faults in fetch: its queue never finishes.
        faulted = (self.faults.any() | self.copy_faults.any()) & ~fault("the fault of a queue is forgotten by the run")
        ended = self.finished.all() & (self.quiet | fault("done does not wait for the DMA"))
        with m.If(active & faulted):
            m.d.sync += self.fault.eq(1)
        with m.Elif(active & ~self.load & ended & ~self.fault):
            m.d.sync += [self.done.eq(1), active.eq(0)]

        with m.If(self.running):
            few = fault("bytes of HBM are counted in 12 bits")
            for total, moved in ((self.hbm_read, self.hbm_read_bytes), (self.hbm_written, self.hbm_written_bytes)):
                m.d.sync += total.eq(total + Mux(few, moved[:12], moved))
        self._windows(m)
        return m

    def _windows(self, m: Module) -> None:
        """First beat and last result of each engine that has a window."""
        for n, engine in enumerate(WINDOWS):
            begun = Signal(name=f"begun_{engine.name.lower()}")
            ended = Signal(name=f"ended_{engine.name.lower()}")
            with m.If(self.start):
                m.d.sync += [self.first[n].eq(0), self.last[n].eq(0), begun.eq(0), ended.eq(0)]
            with m.Elif(self.running):
                with m.If(self.begins[n] & (~begun | fault("a window begins with its last beat"))):
                    m.d.sync += [self.first[n].eq(self.cycles), begun.eq(1)]
                with m.If(self.ends[n] & ~(ended & fault("a window ends with its first result"))):
                    m.d.sync += [self.last[n].eq(self.cycles), ended.eq(1)]
