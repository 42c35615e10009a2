"""Instruction issue of a core: fetch, five queues, semaphores, ring releases, counters, registers."""

from amaranth.hdl import Cat, DomainRenamer, Module, Mux, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.axi import AxiReadSignature
from rtl.base.clock_gate import ClockGate, gated_domain
from rtl.base.dispatch import SEQUENCE_BITS, EngineSignature, EngineStatusSignature, RetireSignature
from rtl.base.dma_port import (
    ENDPOINT_STATUS,
    RELEASE,
    ROW_BYTES_BITS,
    SEMAPHORE_INDEX_BITS,
    SEMAPHORE_UPDATE,
    RingStatusSignature,
)
from rtl.base.layouts import DESCRIPTOR_LAYOUT
from rtl.base.limits import limit_ports
from rtl.base.trace import STATE_BITS, IssueSignature
from rtl.contract.config import Config
from rtl.contract.isa import COPY_QUEUES, Queue
from rtl.contract.memmap import CoreId
from rtl.contract.timing import PARTED, WINDOWS, Engine
from rtl.issue.control import Control
from rtl.issue.copies import Copies
from rtl.issue.counters import BUSY, COUNTER_BITS, Counters
from rtl.issue.fetch import Fetch
from rtl.issue.parts import Parts
from rtl.issue.queue import IssueQueue, has_engine
from rtl.issue.release import Release
from rtl.issue.run import Run
from rtl.issue.semaphores import Semaphores
from rtl.issue.sequencer import Sequencer

__all__ = ["Issue"]

_ENGINE_OF = {Queue.TENSOR: Engine.TENSOR, Queue.VECTOR: Engine.VECTOR, Queue.SCALAR: Engine.SCALAR,
              Queue.GPSIMD: Engine.GPSIMD}  # fmt: skip


class Issue(wiring.Component):
    """Everything between the host, HBM and the engines that decides what runs when.

    `tensor`, `vector`: the engines. `release`, `ring[r]`, `ring_status[r]`, `signal`, `dma_status`: the DMA
    (rtl.base.dma_port); `copy[n]`, `copy_status[n]`: the ring of isa.COPY_QUEUES[n]. `start` clears the DMA for a new
    program, `clear` the failed classes of its
    endpoint. `refused`: memory ports whose request was refused in this cycle. `gpsimd_*`: semaphores as GPSIMD cores
    see and change them; what their counters show. `endpoint`: what memmap.EndpointRegister shows; `link_address`,
    `link_value`: see Control. `hbm_read_bytes`, `hbm_written_bytes`: what the DMA moved in this cycle.
    `tensor_moving`, `tensor_sum`: a moving beat entered, a sum left the array. `issued[q]`, `states`: for a trace
    (rtl.base.trace).
    """

    def __init__(self, cfg: Config, ports: int = 8):
        self.cfg = cfg
        self.ports = ports
        rings = cfg.dma.rings
        super().__init__(
            {
                **limit_ports(cfg, "queue_depth"),
                "axi": Out(AxiReadSignature(cfg.hbm.port_bytes)),
                **{q.name.lower(): Out(EngineSignature()) for q in Queue if has_engine(cfg, q)},
                "release": Out(stream.Signature(RELEASE)),
                "ring": Out(stream.Signature(DESCRIPTOR_LAYOUT)).array(rings),
                "ring_status": Out(RingStatusSignature()).array(rings),
                "copy": Out(stream.Signature(DESCRIPTOR_LAYOUT)).array(len(COPY_QUEUES)),
                "copy_status": Out(RingStatusSignature()).array(len(COPY_QUEUES)),
                "signal": In(stream.Signature(SEMAPHORE_UPDATE)),
                "dma_status": In(EngineStatusSignature()),
                "gpsimd_semaphore": In(SEMAPHORE_INDEX_BITS),
                "gpsimd_semaphore_value": Out(signed(32)),
                "gpsimd_update": In(stream.Signature(SEMAPHORE_UPDATE)),
                "gpsimd_core": Out(3),
                "gpsimd_index": Out(5),
                "gpsimd_value": In(COUNTER_BITS),
                "cycles": Out(COUNTER_BITS),
                "tensor_moving": In(1),
                "tensor_sum": In(1),
                "hbm_read_bytes": In(ROW_BYTES_BITS),
                "hbm_written_bytes": In(ROW_BYTES_BITS),
                "refused": In(ports),
                "endpoint": In(ENDPOINT_STATUS),
                "link_address": Out(8),
                "link_value": In(64),
                "core_id": In(CoreId.BITS),
                "host_valid": In(1),
                "host_write": In(1),
                "host_address": In(16),
                "host_wdata": In(64),
                "host_rdata": Out(64),
                "start": Out(1),
                "clear": Out(1),
                "running": Out(1),
                "done": Out(1),
                "fault": Out(1),
                "retire": Out(RetireSignature()).array(len(Queue)),
                "issued": Out(IssueSignature()).array(len(Queue)),
                "states": Out(STATE_BITS * len(Engine)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        rings = range(cfg.dma.rings)
        fronts = [f"front_{q.name.lower()}" for q in Queue]
        queues = [IssueQueue(cfg, q, front) for q, front in zip(Queue, fronts, strict=True)]
        for q, queue in zip(Queue, queues, strict=True):
            m.submodules[f"queue_{q.name.lower()}"] = queue
        m.submodules.fetch = fetch = Fetch(cfg, fronts)
        m.submodules.semaphores = semaphores = Semaphores(cfg, 2 * len(Queue) + 2, len(Queue) + 2)
        m.submodules.releases = releases = Release(cfg)
        m.submodules.counters = counters = Counters(cfg)
        m.submodules.parts = parts = Parts(cfg)
        m.submodules.run = run = Run(cfg)
        m.submodules.control = control = Control(cfg, self.ports)

        connect(m, fetch.axi, flipped(self.axi))
        connect(m, releases.release, flipped(self.release))
        connect(m, flipped(self.signal), semaphores.update[len(Queue)])
        connect(m, flipped(self.gpsimd_update), semaphores.update[len(Queue) + 1])
        m.d.comb += [
            self.start.eq(run.start),
            self.clear.eq(run.clear),
            self.running.eq(run.running),
            self.states.eq(counters.states),
            self.done.eq(run.done),
            self.fault.eq(run.fault),
            fetch.limit_queue_depth.eq(self.limit_queue_depth),
            fetch.load.eq(run.load),
            fetch.load_client.eq(run.load_client[: len(fetch.load_client)]),
            fetch.load_base.eq(run.load_base),
            fetch.load_count.eq(run.load_count),
            semaphores.clear.eq(run.clear),
            releases.start.eq(run.start),
            releases.load.eq(run.load & (run.load_client >= len(Queue))),
            releases.load_ring.eq(run.load_client - len(Queue)),
            releases.load_count.eq(run.load_count[: len(releases.load_count)]),
            counters.clear.eq(run.start),
            counters.running.eq(run.running),
            parts.clear.eq(run.start),
            parts.running.eq(run.running),
            parts.index.eq(control.part),
            control.part_value.eq(parts.value),
            control.clear.eq(run.start),
        ]
        for q, queue in zip(Queue, queues, strict=True):
            # Most words wait for engines: what looks at them has a clock only while a word comes or is worked at.
            m.submodules[f"{fronts[q]}_gate"] = gate = ClockGate()
            gated_domain(m, fronts[q], gate)
            sequencer = Sequencer(cfg)
            m.submodules[f"sequencer_{q.name.lower()}"] = DomainRenamer(fronts[q])(sequencer)
            m.d.comb += gate.enable.eq(fetch.arrives[q] | queue.wake | sequencer.wake)
            connect(m, fetch.words[q], sequencer.words)
            connect(m, sequencer.seek, fetch.seek[q])
            connect(m, sequencer.peek, fetch.peek[q])
            connect(m, sequencer.o, queue.words)
            connect(m, queue.update, semaphores.update[q])
            connect(m, queue.release, releases.request[q])
            connect(m, queue.retired, flipped(self.retire[q]))
            connect(m, queue.issue, flipped(self.issued[q]))
            m.d.comb += [
                queue.start.eq(run.start),
                sequencer.start.eq(run.start),
                sequencer.count.eq(run.queue_count[q]),
                sequencer.drained.eq(queue.drained),
                sequencer.peeked.eq(fetch.peeked),
                sequencer.peek_failed.eq(fetch.peek_failed),
                queue.sent.eq(sequencer.sent),
                queue.ended.eq(sequencer.ended),
                queue.fetch_cause.eq(Mux(sequencer.fetches, fetch.status[q].cause, 0)),
                queue.fetch_address.eq(fetch.status[q].address),
                queue.refused.eq(releases.refused),
                control.queue[q].eq(queue.status),
                run.finished[q].eq(queue.status.finished),
                run.faults[q].eq(queue.status.cause != 0),
            ]
            for number in range(2):
                m.d.comb += [
                    semaphores.index[2 * q + number].eq(queue.index[number]),
                    queue.value[number].eq(semaphores.value[2 * q + number]),
                ]
            # The sequencer looks at a semaphore only when all that it has shown has been dispatched.
            with m.If(queue.drained):
                m.d.comb += semaphores.index[2 * q].eq(sequencer.index)
            m.d.comb += sequencer.value.eq(semaphores.value[2 * q])
            if q in _ENGINE_OF:
                state = counters.queue[_ENGINE_OF[q]]
                m.d.comb += [
                    state.halted.eq(queue.status.halted),
                    state.semaphore.eq(queue.status.semaphore),
                    state.fetch.eq(queue.status.fetch),
                ]
            if has_engine(cfg, q):
                engine = getattr(self, q.name.lower())
                connect(m, queue.engine, flipped(engine))
                connect(m, flipped(engine.status), counters.status[_ENGINE_OF[q]])
                if _ENGINE_OF[q] in PARTED:
                    connect(m, flipped(engine.status), parts.status[PARTED.index(_ENGINE_OF[q])])
        connect(m, flipped(self.dma_status), counters.status[Engine.DMA])

        for n, q in enumerate(COPY_QUEUES):
            m.submodules[f"copies_{q.name.lower()}"] = copies = Copies(cfg)
            connect(m, flipped(self.copy_status[n]), copies.ring)
            connect(m, queues[q].copy, flipped(self.copy[n]))
            m.d.comb += [
                copies.start.eq(run.start),
                copies.takes.eq(self.copy[n].valid & self.copy[n].ready),
                copies.sequence.eq(queues[q].status.issued[:SEQUENCE_BITS]),
                control.copies[n].eq(copies.status),
                run.copy_faults[n].eq(copies.status.cause != 0),
            ]

        for r in rings:
            client = len(Queue) + r
            status = fetch.status[client]
            ring = self.ring[r]
            told = self.ring_status[r]
            record = control.ring_fault[r]
            m.d.comb += [
                ring.payload.eq(fetch.words[client].payload),
                ring.valid.eq(fetch.words[client].valid),
                fetch.words[client].ready.eq(ring.ready),
                releases.completed[r].eq(told.completed),
                control.ring[r].eq(releases.counts[r]),
                record.eq(Mux(told.cause != 0, Cat(told.cause, told.sequence, told.address), status)),
                run.faults[client].eq((told.cause != 0) | (status.cause != 0)),
            ]

        busy = Cat(told.busy for told in [*self.ring_status, *self.copy_status]).any()
        m.d.comb += run.quiet.eq(releases.settled & ~busy & fetch.idle & ~self.signal.valid)
        m.d.comb += [
            run.run.eq(control.run),
            run.keep.eq(control.keep),
            run.wipe.eq(control.wipe),
            run.freeze.eq(control.freeze),
            run.write_base.eq(control.write_base),
            run.write_count.eq(control.write_count),
            run.client.eq(control.client),
            run.write_data.eq(control.write_data),
            control.base.eq(run.base),
            control.count.eq(run.count),
            control.running.eq(run.running),
            control.done.eq(run.done),
            control.fault.eq(run.fault),
            control.core_id.eq(self.core_id),
            control.cycles.eq(counters.cycles),
            control.hbm_read.eq(run.hbm_read),
            control.hbm_written.eq(run.hbm_written),
            control.refused.eq(self.refused),
            control.endpoint.eq(self.endpoint),
            self.link_address.eq(control.link_address),
            control.link_value.eq(self.link_value),
            semaphores.index[2 * len(Queue)].eq(control.index),
            control.value.eq(semaphores.value[2 * len(Queue)]),
            semaphores.index[2 * len(Queue) + 1].eq(self.gpsimd_semaphore),
            self.gpsimd_semaphore_value.eq(semaphores.value[2 * len(Queue) + 1]),
            self.gpsimd_core.eq(control.gpsimd_core),
            self.gpsimd_index.eq(control.gpsimd_index),
            control.gpsimd_value.eq(self.gpsimd_value),
            self.cycles.eq(counters.cycles),
            control.host_valid.eq(self.host_valid),
            control.host_write.eq(self.host_write),
            control.host_address.eq(self.host_address),
            control.host_wdata.eq(self.host_wdata),
            self.host_rdata.eq(control.host_rdata),
            run.cycles.eq(counters.cycles),
            run.hbm_written_bytes.eq(self.hbm_written_bytes),
            run.hbm_read_bytes.eq(self.hbm_read_bytes),
        ]
        self._windows(m, run, control)
        with m.If(fetch.beat):
            m.d.comb += run.hbm_read_bytes.eq(self.hbm_read_bytes + cfg.hbm.port_bytes)
        for n in range(len(control.values)):
            m.d.comb += control.values[n].eq(counters.values[n])
        return m

    def _windows(self, m: Module, run: Run, control: Control) -> None:
        """What opens and closes a window: the tensor engine says it; of the others a busy cycle and `done`."""
        for n, engine in enumerate(WINDOWS):
            m.d.comb += [control.first[n].eq(run.first[n]), control.last[n].eq(run.last[n])]
            if engine == Engine.TENSOR:
                m.d.comb += [run.begins[n].eq(self.tensor_moving), run.ends[n].eq(self.tensor_sum)]
            else:
                port = getattr(self, engine.name.lower())
                beat = port.status.holds & (port.status.state == BUSY)
                m.d.comb += [run.begins[n].eq(beat), run.ends[n].eq(port.done)]
