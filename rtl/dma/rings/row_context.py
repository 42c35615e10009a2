"""The descriptor of one traffic class that is being cut into pieces of rows."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.dma_port import ROW_BYTES_BITS
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.descriptor import Indirect
from rtl.dma.fabric.packets import CHUNK_BYTES
from rtl.dma.layouts import choice_layout, fetch_layout, job_layout, piece_layout
from rtl.dma.rings.indices import Indices

__all__ = ["RowContext"]


class RowContext(wiring.Component):
    """Three nested counters, innermost first, with one adder a side; each row in pieces of dma.slice_bytes.

    A piece that begins inside a beat of HBM (of the destination, if both ends or none are there) also has the rest of
    that beat, so that no beat there is moved twice. What goes to or comes from another core ends after whole packets.
    One more job waits in `parked` for the end of the one under way.
    With dma.indirect `ask` and `answer` bring indices from SBUF. A row whose index is none of the table is one piece,
    `left_out`.
    Timing: a piece a cycle, the first one in the cycle after `job` was taken, of a job with indices when the first has
    come; no gap between jobs without.
    """

    def __init__(self, cfg: Config, *, link: bool = False):
        self.cfg = cfg
        self.link = link
        super().__init__(
            {
                "job": In(stream.Signature(job_layout(cfg, link=link))),
                "parked": Out(1),
                "piece": Out(stream.Signature(piece_layout(cfg, link=link))),
                "busy": Out(1),
                **(
                    {"ask": Out(stream.Signature(fetch_layout(cfg))), "answer_valid": In(1), "answer": In(128)}
                    if cfg.dma.indirect
                    else {}
                ),
            }
        )

    def _side(
        self, m: Module, side: str, held: object, advance: list[Signal], load: Signal, job: object
    ) -> list[Signal]:
        """Addresses of this side: the first is the row, that at n the start of the loop inside dimension n."""
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
                m.d.comb += following.eq(base + held.bytes)  # type: ignore[attr-defined]
        for n in range(3):
            with m.If(load):
                m.d.sync += at[n].eq(getattr(job, side))
            with m.Elif(Cat(advance[n:]).any()):
                m.d.sync += at[n].eq(following)
        return at

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        layout = job_layout(cfg, link=self.link)
        held = Signal(layout)
        waits = Signal(layout)  # parked
        job = Signal(layout)  # the next
        busy = Signal()
        index = [Signal(32, name=f"rows_left{n}") for n in range(3)]  # after this one
        step = Signal()  # the last piece of a row leaves
        load = Signal()
        free = Signal()
        ends = [Signal(name=f"at_end{n}") for n in range(3)]
        advance = [Signal(name=f"advance{n}") for n in range(3)]
        last = Signal()
        m.d.comb += [end.eq(left == 0) for end, left in zip(ends, index, strict=True)]
        m.d.comb += [
            last.eq(ends[0] & ends[1] & (ends[2] | fault("the outermost dimension of a descriptor is left out"))),
            advance[0].eq(step & ~ends[0]),
            advance[1].eq(step & ends[0] & ~ends[1]),
            advance[2].eq(step & ends[0] & ends[1] & ~last),
            free.eq(~busy | (step & last)),
            self.job.ready.eq(~self.parked),
            load.eq((self.job.valid | self.parked) & free),
        ]
        with m.If(load):
            m.d.comb += job.eq(self.job.payload)
            with m.If(self.parked):
                m.d.comb += job.eq(waits)
            m.d.sync += [held.eq(job), busy.eq(1), self.parked.eq(0)]
        with m.Elif(step & last):
            m.d.sync += busy.eq(0)
        with m.If(self.job.valid & self.job.ready & ~free):
            m.d.sync += [waits.eq(self.job.payload), self.parked.eq(1)]
        for n in range(3):
            with m.If(load):
                m.d.sync += index[n].eq(job.count[n] - 1)
            with m.Elif(advance[n]):
                m.d.sync += index[n].eq(index[n] - 1)
            if n < 2:
                with m.Elif(Cat(advance[n + 1 :]).any()):
                    m.d.sync += index[n].eq(held.count[n] - 1)

        source_at, destination_at = (
            self._side(m, side, held, advance, load, job) for side in ("source", "destination")
        )
        source, destination = Signal.like(source_at[0]), Signal.like(destination_at[0])
        there, left_out = Signal(init=1), Signal()  # the row is known; it is none of a table
        m.d.comb += [source.eq(source_at[0]), destination.eq(destination_at[0]), there.eq(1)]
        if cfg.dma.indirect:
            choice = Signal(choice_layout(cfg))
            chosen = held.indices.indirect != Indirect.NONE
            m.d.comb += left_out.eq(chosen & choice.beyond)
            self._chosen(m, job, held, load, step, choice, there)
            for table, row, at in (
                (Indirect.SOURCE, source, source_at),
                (Indirect.DESTINATION, destination, destination_at),
            ):
                with m.If(held.indices.indirect == table):
                    m.d.comb += row.eq(at[1] + choice.offset)
            m.d.comb += [
                self.piece.payload.left_out.eq(left_out),
                self.piece.payload.bad.eq(left_out & ~held.indices.skips),
                self.piece.payload.at.eq(choice.at),
            ]

        # Pieces of a row.
        offset = Signal(ROW_BYTES_BITS)
        rest = Signal(ROW_BYTES_BITS)
        most = Signal(ROW_BYTES_BITS)
        whole = Signal()  # the rest of the row is this piece
        piece = self.piece.payload
        beat = exact_log2(cfg.hbm.port_bytes)
        here: Value = Const(1)
        if self.link:
            here = held.away == 0
        into = Mux(held.to_sbuf & ~held.from_sbuf, piece.source[:beat], piece.destination[:beat])
        inside = Mux(into == 0, 0, cfg.hbm.port_bytes - into)  # to the end of the beat
        packets = cfg.dma.slice_bytes // CHUNK_BYTES * CHUNK_BYTES
        moved = Mux(fault("a later piece of a row goes to where the row begins"), 0, offset)
        m.d.comb += [
            piece.source.eq(source + offset),
            piece.destination.eq(destination + moved),
            most.eq(Mux(here, cfg.dma.slice_bytes + inside, packets)),
            rest.eq(held.bytes - offset),
            whole.eq((rest <= most) | left_out),
            piece.bytes.eq(Mux(whole, rest, most)),
            piece.last.eq(last & whole),
            step.eq(self.piece.valid & self.piece.ready & whole),
            self.piece.valid.eq(busy & there),
            self.busy.eq(busy | self.parked),
        ]
        m.d.comb += [
            getattr(piece, name).eq(getattr(held, name))
            for name in piece.shape().members
            if name not in ("source", "destination", "bytes", "last", "left_out", "bad", "at")
        ]
        with m.If(load | step):
            m.d.sync += offset.eq(0)
        with m.Elif(self.piece.valid & self.piece.ready):
            m.d.sync += offset.eq(offset + most)
        return m

    def _chosen(
        self, m: Module, job: Signal, held: Signal, load: Signal, step: Signal, choice: Signal, there: Signal
    ) -> None:
        """The next row's choice, if indices make it; `there`: it is known, or needs none."""
        m.submodules.indices = indices = Indices(self.cfg)
        of_source = job.indices.indirect == Indirect.SOURCE
        m.d.comb += [
            indices.start.eq(load & (job.indices.indirect != Indirect.NONE)),
            indices.job.eq(job.indices),
            indices.count.eq(job.count[0]),
            indices.step.eq(Mux(of_source, job.source_step[0], job.destination_step[0])),
            indices.choice.ready.eq(step & (held.indices.indirect != Indirect.NONE)),
            choice.eq(indices.choice.payload),
            there.eq((held.indices.indirect == Indirect.NONE) | indices.choice.valid),
            indices.answer_valid.eq(self.answer_valid),
            indices.answer.eq(self.answer),
        ]
        wiring.connect(m, indices.ask, wiring.flipped(self.ask))
