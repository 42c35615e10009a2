"""Row generator: a checked descriptor becomes rows, one a cycle, each for the mover that serves it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.dma_port import ROW_BYTES_BITS
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.dma.fabric.packets import remote_row
from rtl.dma.layouts import PARTITION_SHIFT, job_layout, lane_bits, row_layout, slot_bits

__all__ = ["RowGenerator"]


class RowGenerator(wiring.Component):
    """Three nested counters, innermost first, with one adder a side.

    `issued` pulses with each row that leaves, `last` with it on the last row of its descriptor.
    `read_bytes`, `written_bytes`: HBM bytes of the row that leaves in this cycle.
    A row goes to the mover that owns the destination's partition; from SBUF to HBM to that of the source's;
    from HBM to HBM to each in turn, also from one descriptor to the next.
    Timing: a row a cycle, the first one in the cycle after `job` was taken; no gap between descriptors.
    """

    def __init__(self, cfg: Config, *, link: bool = False):
        self.cfg = cfg
        self.link = link
        row = stream.Signature(row_layout(cfg))
        remote = {"remote": Out(stream.Signature(remote_row(cfg)))} if link else {}
        super().__init__(
            {
                "job": In(stream.Signature(job_layout(cfg, link=link))),
                "row": Out(row).array(cfg.dma.engines),
                "issued": Out(1),
                "last": Out(1),
                "slot": Out(slot_bits(cfg)),
                "read_bytes": Out(ROW_BYTES_BITS),
                "written_bytes": Out(ROW_BYTES_BITS),
                "busy": Out(1),
                **remote,
            }
        )

    def _side(self, m: Module, side: str, held: object, advance: list[Signal], load: Signal) -> Signal:
        """Address of this side's row: at[0] is the row, at[n] the start of the loop inside dimension n."""
        bits = len(Value.cast(getattr(held, side)))
        at = [Signal(bits, name=f"{side}_at{n}") for n in range(3)]
        steps = getattr(held, f"{side}_step")
        base = Signal(bits, name=f"{side}_base")
        step = Signal(bits, name=f"{side}_step")
        following = Signal(bits, name=f"{side}_next")
        for n in range(3):
            with m.If(advance[n]):
                m.d.comb += [base.eq(at[n]), step.eq(steps[n])]
        m.d.comb += following.eq(base + step)
        if side == "source":
            with m.If(fault("a step of 0 does not broadcast") & (step == 0)):
                m.d.comb += following.eq(base + held.bytes)
        for n in range(3):
            with m.If(load):
                m.d.sync += at[n].eq(getattr(self.job.payload, side))
            with m.Elif(Cat(advance[n:]).any()):
                m.d.sync += at[n].eq(following)
        return at[0]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        job = self.job.payload
        held = Signal(job_layout(cfg, link=self.link))
        busy = Signal()
        index = [Signal(32, name=f"rows_left{n}") for n in range(3)]  # after this one
        step = Signal()  # the row leaves
        load = Signal()
        ends = [Signal(name=f"at_end{n}") for n in range(3)]
        advance = [Signal(name=f"advance{n}") for n in range(3)]
        last = Signal()
        m.d.comb += [end.eq(left == 0) for end, left in zip(ends, index, strict=True)]
        m.d.comb += [
            last.eq(ends[0] & ends[1] & (ends[2] | fault("the outermost dimension of a descriptor is left out"))),
            advance[0].eq(step & ~ends[0]),
            advance[1].eq(step & ends[0] & ~ends[1]),
            advance[2].eq(step & ends[0] & ends[1] & ~last),
            self.job.ready.eq(~busy | (step & last)),
            load.eq(self.job.valid & self.job.ready),
        ]
        for n in range(3):
            with m.If(load):
                m.d.sync += index[n].eq(job.count[n] - 1)
            with m.Elif(advance[n]):
                m.d.sync += index[n].eq(index[n] - 1)
            if n < 2:
                with m.Elif(Cat(advance[n + 1 :]).any()):
                    m.d.sync += index[n].eq(held.count[n] - 1)
        with m.If(load):
            m.d.sync += [held.eq(job), busy.eq(1)]
        with m.Elif(step & last):
            m.d.sync += busy.eq(0)

        source = self._side(m, "source", held, advance, load)
        destination = self._side(m, "destination", held, advance, load)

        # Which mover: the upper bits of the partition, or a turn.
        movers = ceil_log2(cfg.dma.engines)
        shift = PARTITION_SHIFT + lane_bits(cfg)
        turn = Signal(movers)
        mover = Signal(movers)
        with m.If(held.to_sbuf):
            m.d.comb += mover.eq(destination[shift:])
        with m.Elif(held.from_sbuf):
            m.d.comb += mover.eq(source[shift:])
        with m.Else():
            m.d.comb += mover.eq(turn)
        # It goes on over descriptors, so that those of one row do not all meet at mover 0.
        with m.If(step):
            m.d.sync += turn.eq(turn + 1)

        here: Value = Const(1)  # both ends are in this core
        if self.link:
            here = held.away == 0
        for e, row in enumerate(self.row):
            m.d.comb += [
                row.valid.eq(busy & (mover == e) & here),
                row.payload.slot.eq(held.slot),
                row.payload.from_sbuf.eq(held.from_sbuf),
                row.payload.to_sbuf.eq(held.to_sbuf),
                row.payload.source.eq(source),
                row.payload.destination.eq(destination),
                row.payload.bytes.eq(held.bytes),
                row.payload.add.eq(held.add),
            ]
        accepted: Value = Cat(row.ready & (mover == e) for e, row in enumerate(self.row)).any()
        from_hbm: Value = ~held.from_sbuf
        to_hbm: Value = ~held.to_sbuf
        if self.link:
            accepted = Mux(here, accepted, self.remote.ready)
            from_hbm = from_hbm & ~held.away[1]
            to_hbm = to_hbm & ~held.away[0]
            row = self.remote.payload
            writes = held.away[0]
            far = Mux(writes, destination, source)
            m.d.comb += [
                self.remote.valid.eq(busy & ~here),
                row.slot.eq(held.slot),
                row.write.eq(writes),
                row.local_sbuf.eq(Mux(writes, held.from_sbuf, held.to_sbuf)),
                row.local.eq(Mux(writes, source, destination)),
                row.remote[:40].eq(far),
                row.remote[40:].eq(held.far),
                row.bytes.eq(held.bytes),
                row.add.eq(held.add),
                row.class_.eq(held.class_),
                row.last.eq(last),
                row.signals.eq(held.signals),
                row.signal.eq(held.signal),
            ]
        m.d.comb += [
            step.eq(busy & accepted),
            self.issued.eq(step),
            self.last.eq(last),
            self.slot.eq(held.slot),
            self.read_bytes.eq(Mux(step & from_hbm, held.bytes, 0)),
            self.written_bytes.eq(Mux(step & to_hbm, held.bytes, 0)),
            self.busy.eq(busy),
        ]
        return m
