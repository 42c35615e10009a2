"""DMA: rings of descriptors, row generator, movers, HBM ports. Connects them."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.axi import FAST_ID, LINK_ID, AxiSignature
from rtl.base.dispatch import EngineStatusSignature
from rtl.base.dma_port import RELEASE, ROW_BYTES_BITS, SEMAPHORE_UPDATE, RingStatusSignature, copy_ring, ring_count
from rtl.base.fault import fault
from rtl.base.layouts import DESCRIPTOR_LAYOUT
from rtl.base.limits import limit_ports
from rtl.base.memory_port import SbufMoverSignature
from rtl.base.placed import Placed
from rtl.contract.config import Config
from rtl.contract.isa import COPY_QUEUES
from rtl.contract.memmap import CoreId
from rtl.dma.fabric.link import LINK_COUNTS, LINK_PORTS, Link
from rtl.dma.join_link import join_link
from rtl.dma.layouts import lanes
from rtl.dma.movers.crossbar import Crossbar
from rtl.dma.movers.mover import Mover
from rtl.dma.movers.port import Port, movers_of
from rtl.dma.rings.check import Check
from rtl.dma.rings.complete import Complete
from rtl.dma.rings.intake import Intake
from rtl.dma.rings.rows import RowGenerator
from rtl.dma.status import Status

__all__ = ["Dma"]


def _traced(cfg: Config) -> list[int]:
    """Rings of which a trace is told: those in HBM, then those of queues."""
    return [*range(cfg.dma.rings), *(copy_ring(cfg, queue) for queue in COPY_QUEUES)]


class Dma(wiring.Component):
    """See docs/dma.md. Members towards issue: `release`, `ring[r]`, `signal`, `ring_status[r]`; `start` clears
    what was released, counted and halted (only while not `active`). The last ring is that of the GPSIMD cores, if there
    are any. `axi[i]`: HBM. `mover[e]`: SBUF.
    `status`: what the DMA does in this cycle (timing.STALLS). `hbm_read_bytes`, `hbm_written_bytes`: useful
    bytes of the row that left the row generator in this cycle.
    `link`: other cores can be reached (docs/endpoint.md): `request_out`, `response_out`, `request_in`, `response_in`
    are the packets; LINK_COUNTS tells what the endpoint refused; `clear` makes failed classes good again.
    `begins`, `ends`: rings of the queues whose next descriptor is taken in this cycle, or has completed; `movers_busy`:
    movers that moved a byte or wait for one. `active`: the clock is needed in this cycle.
    """

    def __init__(self, cfg: Config, *, link: bool = False):
        self.cfg = cfg
        self.link = link
        rings = ring_count(cfg)
        super().__init__(
            {
                **limit_ports(cfg, "buffer_bytes", "burst_bytes"),
                "core_id": In(CoreId.BITS),
                "start": In(1),
                "release": In(stream.Signature(RELEASE)),
                "ring": In(stream.Signature(DESCRIPTOR_LAYOUT)).array(rings),
                "ring_status": Out(RingStatusSignature().flip()).array(rings),
                "signal": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "axi": Out(AxiSignature(cfg.hbm.port_bytes)).array(cfg.hbm.ports),
                "mover": Out(SbufMoverSignature(cfg)).array(cfg.dma.engines),
                **({"clear": In(1)} | LINK_PORTS | LINK_COUNTS if link else {}),
                "status": Out(EngineStatusSignature()),
                "begins": Out(len(_traced(cfg))),
                "ends": Out(len(_traced(cfg))),
                "movers_busy": Out(cfg.dma.engines),
                "hbm_read_bytes": Out(ROW_BYTES_BITS),
                "hbm_written_bytes": Out(ROW_BYTES_BITS),
                "active": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        engines = range(cfg.dma.engines)
        m.submodules.intake = intake = Intake(cfg)
        m.submodules.check = check = Check(cfg, link=self.link)
        m.submodules.rows = rows = RowGenerator(cfg, link=self.link)
        m.submodules.complete = complete = Complete(cfg, link=self.link)
        m.submodules.crossbar = crossbar = Crossbar(cfg)
        m.submodules.state = state = Status(cfg)

        connect(m, flipped(self.release), intake.release)
        connect(m, intake.candidate, check.candidate)
        connect(m, check.job, rows.job)
        for r in range(ring_count(cfg)):
            connect(m, flipped(self.ring[r]), intake.ring[r])
            connect(m, complete.ring_status[r], flipped(self.ring_status[r]))
        for n, r in enumerate(_traced(cfg)):
            lost = fault("the end of a ring's descriptors is not told") if r == cfg.dma.rings - 1 else 0
            m.d.comb += [
                self.begins[n].eq(intake.opened[r]),
                self.ends[n].eq(complete.ring_status[r].completed & ~lost),
            ]
        m.d.comb += [
            intake.start.eq(self.start),
            intake.stop.eq(complete.stop),
            intake.room.eq(complete.room),
            intake.tail.eq(complete.tail),
            intake.parked.eq(rows.parked),
            check.core_id.eq(self.core_id),
            complete.start.eq(self.start),
            complete.opened.eq(intake.opened),
            complete.waiting.eq(intake.waiting),
            complete.report.eq(check.report),
            complete.refused.eq(check.refused),
            complete.report_slot.eq(check.slot),
            complete.outcome.eq(check.outcome),
            complete.issued.eq(rows.issued),
            complete.last.eq(rows.last),
            complete.issued_slot.eq(rows.slot),
            self.hbm_read_bytes.eq(rows.read_bytes),
            self.hbm_written_bytes.eq(rows.written_bytes),
        ]

        if cfg.dma.indirect:
            askers = cfg.dma.engines * lanes(cfg)
            for c in range(cfg.dma.classes):
                connect(m, rows.ask[c], crossbar.ask[askers + c])
            connect(m, rows.left_out, complete.done[complete.sources - 1])
            m.d.comb += [
                rows.answer_valid.eq(crossbar.answer_valid[askers:]),
                rows.answer.eq(crossbar.answer),
                complete.bad.eq(rows.bad),
                complete.bad_at.eq(rows.bad_at),
            ]
        movers: list[Placed] = []
        for e in engines:
            mover = Placed("dma_mover", lambda: Mover(cfg), faults=True)
            m.submodules[f"mover{e}"] = mover
            movers.append(mover)
            connect(m, rows.row[e], mover.row)
            m.d.comb += [mover.class_.eq(rows.class_), rows.room[e].eq(mover.room)]
            connect(m, mover.done, complete.done[e])
            m.d.comb += [
                mover.index.eq(e),
                mover.limit_buffer_bytes.eq(self.limit_buffer_bytes),
                mover.limit_burst_bytes.eq(self.limit_burst_bytes),
                mover.answer.eq(crossbar.answer),
                mover.serve_valid.eq(crossbar.serve_valid[e]),
                mover.serve.eq(crossbar.serve),
                crossbar.serve_ready[e].eq(mover.serve_ready),
                crossbar.data[e].eq(self.mover[e].read_data),
            ]
            for lane in range(lanes(cfg)):
                k = lane * cfg.dma.engines + e
                connect(m, mover.ask[lane], crossbar.ask[k])
                m.d.comb += mover.answer_valid[lane].eq(crossbar.answer_valid[k])

        link_busy: Value = Const(0, 1)
        more: tuple[Placed, ...] = ()
        if self.link:
            m.submodules.link = link = Link(cfg)
            cleared = self.clear & ~fault("the clock of the DMA does not run for a clear")
            link_busy = link.busy | self.request_in.valid | self.response_in.valid | cleared
            more = join_link(m, self, link, check, rows, complete, movers)
        else:
            connect(m, complete.signal, flipped(self.signal))
            for e in engines:
                connect(m, movers[e].sbuf, flipped(self.mover[e]))

        ports: list[Port] = []
        for i in range(cfg.hbm.ports):
            beside = [n for n in range(len(more)) if n // 2 % cfg.hbm.ports == i]  # both movers of a bank
            fast = [e for e in movers_of(cfg, i) if lanes(cfg) > 1]
            port = Port(cfg, i, tuple(LINK_ID + n for n in beside), tuple(FAST_ID + e for e in fast))
            m.submodules[f"port{i}"] = port
            ports.append(port)
            axi = self.axi[i]
            connect(m, port.axi, flipped(axi))
            here = [movers[e] for e in movers_of(cfg, i)] + [more[n] for n in beside]
            for mover in here:
                m.d.comb += [
                    mover.beat_data.eq(axi.rdata),
                    mover.beat_error.eq(axi.rresp[1]),
                    mover.b_error.eq(axi.bresp[1]),
                ]
            for k, (mover, lane) in enumerate([(mover, 0) for mover in here] + [(movers[e], 1) for e in fast]):
                connect(m, mover.read[lane], port.read[k])
                connect(m, mover.write[lane], port.write[k])
                m.d.comb += [
                    mover.beat_valid[lane].eq(port.beat_valid[k]),
                    port.w_valid[k].eq(mover.w_valid[lane]),
                    port.w_data[k].eq(mover.w_data[lane]),
                    port.w_strobe[k].eq(mover.w_strobe[lane]),
                    mover.w_take[lane].eq(port.w_take[k]),
                    mover.b_valid[lane].eq(port.b_valid[k]),
                    port.b_ready[k].eq(mover.b_ready[lane]),
                ]

        working = Signal()
        m.d.comb += [
            working.eq(check.busy | rows.busy | complete.busy),
            self.active.eq(self.start | self.release.valid | intake.offered | working | link_busy),
            state.working.eq(working | intake.waiting.any()),
            state.faulted.eq(complete.faulted),
            state.moves.eq(Cat(*(x.moves for x in movers), *(p.moves for p in ports)).any()),
            state.sbuf.eq(Cat(x.sbuf_refused for x in movers).any()),
            state.hbm.eq(Cat(p.refused for p in ports).any()),
            state.reading.eq(Cat(x.reading for x in movers).any()),
            state.writing.eq(Cat(x.writing for x in movers).any()),
            state.committing.eq(Cat(x.committing for x in movers).any()),
            self.movers_busy.eq(Cat(x.moves | x.reading | x.writing | x.committing for x in movers)),
        ]
        connect(m, state.status, flipped(self.status))
        return m
