"""The GPSIMD engine: its cores behind a bridge to the root clock, and what is counted there."""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, DomainRenamer, Module, Mux, ResetSignal, Signal, signed
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.base.clock_gate import ClockGate
from rtl.base.dma_port import SEMAPHORE_INDEX_BITS, SEMAPHORE_UPDATE, RingStatusSignature
from rtl.base.engine_frame import EngineFrame
from rtl.base.fault import fault
from rtl.base.layouts import DESCRIPTOR_LAYOUT
from rtl.contract.config import Config
from rtl.contract.gpsimd import CORES_MAX, Counter, cores
from rtl.gpsimd.cluster import STATE_BITS, Cluster, tile_domains
from rtl.gpsimd.copies import ENDED_BITS
from rtl.gpsimd.core_counters import CoreCounters
from rtl.gpsimd.waiting import TIME_BITS

__all__ = ["GPSIMD_PORTS", "GpsimdEngine"]

GPSIMD_PORTS = {
    "start": In(1),
    "running": In(1),
    "edge": In(1),
    "mtime": In(TIME_BITS),
    "index": Out(SEMAPHORE_INDEX_BITS),
    "value": In(signed(32)),
    "update": Out(stream.Signature(SEMAPHORE_UPDATE)),
    "copy": Out(stream.Signature(DESCRIPTOR_LAYOUT)),
    "copies": Out(RingStatusSignature()),
    "told_core": In(3),
    "told_index": In(5),
    "told": Out(TIME_BITS),
    "debug_valid": Out(1),
    "debug_core": Out(3),
    "debug_byte": Out(8),
    "core_state": Out(STATE_BITS * CORES_MAX),
}
"""Of the engine beside those of every engine."""


class GpsimdEngine(EngineFrame):
    """GP_LOAD, GP_RUN, GP_STORE. docs/gpsimd.md has the timing.

    start: a new program, for which no core has an image and all counters are 0; running: cycles that count. edge:
    cycles in which the engine's clock would tick, were there work. mtime: CYCLES, one more after each cycle with
    `running`, 0 after `start`. index, value, update: semaphores.
    copy: descriptors for the ring of these cores, whose status is `copies`.
    told: a counter, for the host. debug_*: a byte that a core prints, for one cycle; outputs only. core_state: of each
    core, for a trace; IDLE of those that are not there.
    """

    def __init__(self, cfg: Config):
        super().__init__(
            cfg,
            Cluster(cfg),
            domain="gpsimd",
            clock_mhz=cfg.gpsimd.clock_mhz,
            part_domains=tile_domains(cfg),
            more=GPSIMD_PORTS,
        )

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        count = cores(self.cfg.partitions)
        cluster = self._pipeline
        counters = CoreCounters(count)
        m.submodules.counters = DomainRenamer({"sync": self.domain, "root": "sync"})(counters)
        filled, none = Signal(count), Const(Counter.IDLE, STATE_BITS)
        with m.If(self.start):
            m.d.sync += filled.eq(Mux(fault("images of the last program can be run"), filled, 0))
        with m.Elif(self.tick):
            m.d.sync += filled.eq(filled | cluster.fills)
        # as mtime, but on a clock that stands still without work: what cores make of the time costs nothing meanwhile
        time = Signal(TIME_BITS)
        m.submodules.time_gate = gate = ClockGate()
        m.domains.timed = ClockDomain(local=True)
        m.d.comb += [
            gate.enable.eq((cluster.active & ~fault("time stands still for cores")) | self.queue.command.valid),
            ClockSignal("timed").eq(gate.gated),
            ResetSignal("timed").eq(ResetSignal()),
        ]
        m.d.timed += time.eq(Mux(self.start, 0, self.mtime + self.running))
        # a descriptor is taken, and copies end, between two edges of the engine's clock
        taken, ended = Signal(), Signal(ENDED_BITS)
        with m.If(self.tick):
            m.d.sync += [taken.eq(0), ended.eq(0)]
        with m.Else():
            m.d.sync += [taken.eq(taken | (self.copy.valid & self.copy.ready)), ended.eq(ended + self.copies.completed)]
        m.d.comb += [
            cluster.filled.eq(filled),
            cluster.mtime.eq(time),
            cluster.value.eq(self.value),
            cluster.update.ready.eq(self.update.ready),
            self.index.eq(cluster.index),
            self.update.valid.eq(cluster.update.valid & self.tick),
            self.update.payload.eq(cluster.update.payload),
            self.debug_valid.eq(cluster.printed & self.tick),
            self.debug_core.eq(cluster.printer),
            self.debug_byte.eq(cluster.byte),
            cluster.copy.ready.eq(taken | (self.copy.valid & self.copy.ready)),
            self.copy.valid.eq(cluster.copy.valid & ~taken),
            self.copy.payload.eq(cluster.copy.payload),
            cluster.copies_ended.eq(ended + self.copies.completed),
            cluster.copies_busy.eq(self.copies.busy),
            cluster.copies_cause.eq(self.copies.cause),
            counters.clear.eq(self.start),
            counters.running.eq(self.running),
            counters.tick.eq(self.edge),
            counters.active.eq(cluster.active),
            counters.retires.eq(cluster.retires),
            *(own.eq(moves) for own, moves in zip(counters.moves, cluster.moves, strict=True)),
            counters.told_core.eq(self.told_core),
            counters.told_index.eq(self.told_index),
            self.told.eq(counters.told),
            self.core_state.eq(Cat(*cluster.state, *[none] * (CORES_MAX - count)) ^ fault("a trace has another state")),
        ]
        for k in range(count):
            m.d.comb += [
                counters.state[k].eq(cluster.state[k]),
                counters.bytes[k].eq(cluster.sbuf_bytes[k]),
                counters.index[k].eq(cluster.counter[k]),
                cluster.counter_value[k].eq(counters.value[k]),
            ]
        return m
