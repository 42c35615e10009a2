"""One NeuronCore-class core: connects queues, engines, memories and DMA; computes nothing."""

from amaranth.hdl import Cat, Const, DomainRenamer, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.axi import AxiSignature
from rtl.base.clock_gate import ClockGate, gated_domain
from rtl.base.dispatch import RetireSignature
from rtl.base.dma_port import copy_ring
from rtl.base.engine_clock import clock_engine
from rtl.base.engine_frame import EngineFrame
from rtl.base.fault import fault
from rtl.base.limits import limit_ports
from rtl.base.packet import FOREIGN_BITS
from rtl.base.trace import TraceSignature, of_rings
from rtl.base.wake import Wake
from rtl.contract.config import Config
from rtl.contract.isa import COPY_QUEUES, Queue
from rtl.contract.memmap import CoreId
from rtl.contract.timing import CONFLICT_PORTS
from rtl.dma.axi_share import AxiShare
from rtl.dma.dma import Dma
from rtl.dma.fabric.link import LINK_COUNTS, LINK_PORTS
from rtl.gpsimd.engine import GpsimdEngine
from rtl.issue.issue import Issue
from rtl.memory.psum import Psum
from rtl.memory.sbuf import Sbuf
from rtl.scalar.engine import ScalarEngine
from rtl.tensor.engine import TensorEngine
from rtl.tensor.feed import reach
from rtl.vector.engine import LIMITS, VectorEngine

__all__ = ["DEBUG_PORTS", "Core"]

DEBUG_PORTS = {"debug_valid": Out(1), "debug_core": Out(3), "debug_byte": Out(8)}
_STATUS_PORTS = {"foreign": Out(FOREIGN_BITS), "link_address": Out(8), "link_value": In(64)}


class Core(wiring.Component):
    """A core. `form` is the form of the tensor array and of the adders of PSUM: "structural" or "native".

    Ports: `axi[i]`, the AXI4 managers towards HBM; `host_*`, the register port (memmap.Control);
    `core_id`, its place in the address map; `done` and `fault`; `retire[q]` and `trace`, outputs only, and `debug_*`,
    what GPSIMD cores print, a byte a cycle at most. With `link`
    those of dma.link.LINK_PORTS too: packets to and from other cores, and `foreign`, the low bits of the count of those
    that were for another core; `link_value`, the register of the port at `link_address`, in the same cycle.
    Engines run on gated clocks of the root clock `clk`, so an idle engine costs nothing; SBUF and PSUM on one that
    runs with any of them, and a few cycles longer: until read data and sums have arrived and ages are 0.
    `limited`: it has ports `limit_*` (rtl.contract.limits), and does what a core built for less would, and with
    other clocks what one built for them would if they need the same bridges (`Config.close_clocks`).
    """

    def __init__(self, cfg: Config, form: str = "native", *, link: bool = False, limited: bool = False):
        self.cfg = cfg
        self.form = form
        self.link = link
        self.limited = limited
        super().__init__(
            {
                "axi": Out(AxiSignature(cfg.hbm.port_bytes)).array(cfg.hbm.ports),
                "host_valid": In(1),
                "host_write": In(1),
                "host_address": In(16),
                "host_wdata": In(64),
                "host_rdata": Out(64),
                "core_id": In(CoreId.BITS),
                **(limit_ports(cfg) if limited else {}),
                "done": Out(1),
                "fault": Out(1),
                "retire": Out(RetireSignature()).array(len(Queue)),
                "trace": Out(TraceSignature()),
                **(DEBUG_PORTS if cfg.gpsimd.enabled else {}),
                **({**LINK_PORTS, **_STATUS_PORTS} if link else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        cfg = self.cfg
        m = Module()
        m.submodules.issue = issue = Issue(cfg, ports=len(CONFLICT_PORTS))
        groups = range(cfg.tensor.groups)
        sbuf = Sbuf(cfg, [reach(cfg, g) for g in groups], add_domain="sbuf_add", form=self.form)
        m.submodules.sbuf = DomainRenamer("memory")(sbuf)
        adders = tuple(f"add{g}" for g in groups)
        psum = Psum(cfg, add_domains=adders, form=self.form)
        m.submodules.psum = DomainRenamer("memory")(psum)
        m.submodules.share = share = AxiShare(cfg.hbm.port_bytes)
        tensor = TensorEngine(cfg, form=self.form)
        m.submodules.tensor = DomainRenamer("tensor")(tensor)
        m.submodules.vector = vector = VectorEngine(cfg)
        m.submodules.scalar = scalar = ScalarEngine(cfg)
        gpsimd = GpsimdEngine(cfg) if cfg.gpsimd.enabled else None
        dma = Dma(cfg, link=self.link)
        m.submodules.dma = DomainRenamer("dma")(dma)

        status = issue.tensor.status
        tensor_active = issue.tensor.command.valid | status.holds | status.draining
        tensor_awake = self._wake(m, "tensor", tensor_active)
        dma_awake = self._wake(m, "dma", dma.active)
        awake = [tensor_awake, dma_awake & ~fault("the memories' clock does not wait for the DMA"), psum.adding.any()]
        self._gate(m, "tensor", tensor_awake)
        for g, name in enumerate(adders):
            self._gate(m, name, psum.adding[g])
        self._gate(m, "dma", dma_awake)
        if cfg.sbuf.adders:
            self._gate(m, "sbuf_add", sbuf.adding)
        engines: dict[str, EngineFrame] = {"vector": vector, "scalar": scalar}
        if gpsimd is not None:
            m.submodules.gpsimd = engines["gpsimd"] = gpsimd
            self._programmable(m, gpsimd, issue, dma)
        for name, engine in engines.items():
            waiting = getattr(issue, name).command.valid
            parts = ("ticks", "cycles") if self.limited else ()
            ratio = [self._still(m, f"limit_{name}_{part}") for part in parts]
            clock_engine(m, engine, waiting, f"{name}_", ratio)
            awake.append(waiting | engine.active)
        self._gate(m, "memory", self._wake(m, "memory", Cat(awake).any()))

        if self.limited:
            for part, names in ((issue, ("queue_depth",)), (dma, ("buffer_bytes", "burst_bytes")), (vector, LIMITS)):
                m.d.comb += [getattr(part, f"limit_{name}").eq(self._still(m, f"limit_{name}")) for name in names]

        connect(m, issue.tensor, tensor.queue)
        connect(m, issue.vector, vector.queue)
        connect(m, issue.scalar, scalar.queue)
        if gpsimd is not None:
            connect(m, issue.gpsimd, gpsimd.queue)
            connect(m, gpsimd.sbuf_read, sbuf.read_gpsimd)
            connect(m, gpsimd.sbuf_write, sbuf.write_gpsimd)
        for feeds, reads in ((tensor.sbuf_moving, sbuf.read_moving), (tensor.sbuf_stationary, sbuf.read_stationary)):
            for feed, read in zip(feeds, reads, strict=True):
                connect(m, feed, read)
        for g in groups:
            connect(m, tensor.psum[g], psum.accumulate[g])
            connect(m, tensor.transposed[g], psum.transposed[g])
        for name, engine in (("vector", vector), ("scalar", scalar)):
            for memory, way in ((sbuf, "sbuf"), (psum, "psum")):
                connect(m, getattr(engine, f"{way}_read"), getattr(memory, f"read_{name}"))
                connect(m, getattr(engine, f"{way}_write"), getattr(memory, f"write_{name}"))
        for e in range(cfg.dma.engines):
            connect(m, dma.mover[e], sbuf.mover[e])

        connect(m, issue.release, dma.release)
        connect(m, dma.signal, issue.signal)
        for r in range(cfg.dma.rings):
            connect(m, issue.ring[r], dma.ring[r])
            connect(m, dma.ring_status[r], issue.ring_status[r])
        for n, q in enumerate(COPY_QUEUES):
            connect(m, issue.copy[n], dma.ring[copy_ring(cfg, q)])
            connect(m, dma.ring_status[copy_ring(cfg, q)], issue.copy_status[n])
        connect(m, dma.status, issue.dma_status)

        connect(m, issue.axi, share.fetch)
        connect(m, dma.axi[0], share.dma)
        connect(m, share.axi, flipped(self.axi[0]))
        for i in range(1, cfg.hbm.ports):
            connect(m, dma.axi[i], flipped(self.axi[i]))

        core_id = self._still(m, "core_id")
        m.d.comb += [
            dma.start.eq(issue.start),
            dma.core_id.eq(core_id),
            issue.core_id.eq(core_id),
            issue.tensor_moving.eq(tensor.first_beat),
            issue.tensor_sum.eq(tensor.last_sum),
            issue.hbm_read_bytes.eq(dma.hbm_read_bytes),
            issue.hbm_written_bytes.eq(dma.hbm_written_bytes),
            issue.refused.eq(self._refused(sbuf, psum)),
            issue.host_valid.eq(self.host_valid),
            issue.host_write.eq(self.host_write),
            issue.host_address.eq(self.host_address),
            issue.host_wdata.eq(self.host_wdata),
            self.host_rdata.eq(issue.host_rdata),
            self.done.eq(issue.done),
            self.fault.eq(issue.fault),
        ]
        for q in Queue:
            connect(m, issue.retire[q], flipped(self.retire[q]))
            connect(m, issue.issued[q], flipped(self.trace.issue[q]))
        m.d.comb += [
            self.trace.running.eq(issue.running),
            self.trace.state.eq(issue.states),
            self.trace.begin.eq(of_rings(cfg, dma.begins)),
            self.trace.end.eq(of_rings(cfg, dma.ends)),
            self.trace.movers.eq(dma.movers_busy),
            self.trace.refused.eq(issue.refused),
        ]
        if self.link:
            for name, member in LINK_PORTS.items():
                inside, outside = getattr(dma, name), getattr(self, name)
                if not member.is_signature:
                    m.d.comb += inside.eq(outside)
                elif member.flow == In:
                    connect(m, flipped(outside), inside)
                else:
                    connect(m, inside, flipped(outside))
            m.d.comb += [getattr(issue.endpoint, name).eq(getattr(dma, name)) for name in LINK_COUNTS]
            m.d.comb += [
                dma.clear.eq(issue.clear),
                self.foreign.eq(dma.foreign[:FOREIGN_BITS]),
                self.link_address.eq(issue.link_address),
                issue.link_value.eq(self.link_value),
            ]
        return m

    def _programmable(self, m: Module, gpsimd: GpsimdEngine, issue: Issue, dma: Dma) -> None:
        """What the GPSIMD engine has beside other engines."""
        connect(m, gpsimd.update, issue.gpsimd_update)
        ring = self.cfg.dma.rings
        connect(m, gpsimd.copy, dma.ring[ring])
        connect(m, dma.ring_status[ring], gpsimd.copies)
        m.d.comb += [
            gpsimd.start.eq(issue.start),
            gpsimd.running.eq(issue.running),
            gpsimd.mtime.eq(issue.cycles),
            issue.gpsimd_semaphore.eq(gpsimd.index),
            gpsimd.value.eq(issue.gpsimd_semaphore_value),
            gpsimd.told_core.eq(issue.gpsimd_core),
            gpsimd.told_index.eq(issue.gpsimd_index),
            issue.gpsimd_value.eq(gpsimd.told),
            self.trace.core_tick.eq(gpsimd.edge),
            self.trace.core_state.eq(gpsimd.core_state),
            *(getattr(self, name).eq(getattr(gpsimd, name)) for name in DEBUG_PORTS),
        ]

    @staticmethod
    def _wake(m: Module, name: str, active: Value) -> Value:
        """Keep a clock on a little after its engine's last work."""
        m.submodules[f"{name}_wake"] = wake = Wake()
        m.d.comb += wake.active.eq(active)
        return wake.enable

    def _still(self, m: Module, name: str) -> Signal:
        """A port that stands still from reset on. Through a register, for a simulator works out what a port reaches as
        often as any port changes."""
        port = getattr(self, name)
        held = Signal.like(port, name=f"still_{name}", reset_less=True)
        m.d.sync += held.eq(port)
        return held

    @staticmethod
    def _gate(m: Module, name: str, enable: Value) -> None:
        """Make the clock domain `name`, which runs while `enable`."""
        m.submodules[f"{name}_gate"] = gate = ClockGate()
        gated_domain(m, name, gate)
        m.d.comb += gate.enable.eq(enable)

    @staticmethod
    def _refused(sbuf: Sbuf, psum: Psum) -> Value:
        """One bit for each of timing.CONFLICT_PORTS."""

        def of(memory: Sbuf | Psum, port: str) -> Value:
            bits = [bit for name, bit in zip(memory.refused_names, memory.refused, strict=True) if name == port]
            return Cat(*bits).any() if len(bits) > 1 else bits[0] if bits else Const(0)

        by_port = {
            "sbuf_moving": of(sbuf, "read_moving"),
            "sbuf_stationary": of(sbuf, "read_stationary"),
            "sbuf_vector_read": of(sbuf, "read_vector"),
            "sbuf_vector_write": of(sbuf, "write_vector"),
            "psum_vector_read": of(psum, "read_vector"),
            "sbuf_scalar_read": of(sbuf, "read_scalar"),
            "sbuf_scalar_write": of(sbuf, "write_scalar"),
            "psum_vector_write": of(psum, "write_vector"),
            "psum_scalar_read": of(psum, "read_scalar"),
            "psum_scalar_write": of(psum, "write_scalar"),
            "sbuf_gpsimd_read": of(sbuf, "read_gpsimd"),
            "sbuf_gpsimd_write": of(sbuf, "write_gpsimd"),
            "sbuf_mover_reads": of(sbuf, "mover_read"),
            "sbuf_mover_writes": of(sbuf, "mover_write"),
            "sbuf_mover_adds": of(sbuf, "mover_add"),
        }
        return Cat(by_port[name] for name in CONFLICT_PORTS)
