"""Row generator: checked descriptors become rows, one a cycle, each for the mover that serves it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.arbiter import RoundRobin
from rtl.base.dma_port import ROW_BYTES_BITS
from rtl.base.fifo import Fifo
from rtl.contract.config import Config
from rtl.dma.fabric.packets import remote_row
from rtl.dma.layouts import (
    CLASSES,
    INDEX_PLACE_BITS,
    PARTITION_SHIFT,
    done_layout,
    fetch_layout,
    job_layout,
    lane_bits,
    piece_layout,
    row_layout,
    slot_bits,
)
from rtl.dma.rings.row_context import RowContext

__all__ = ["RowGenerator"]


class RowGenerator(wiring.Component):
    """A RowContext for each class; those whose next piece would be taken go in turn.

    `parked`: classes that take no further job yet. `row[e]`, of `class_`, is for mover e, and there is one only if its
    `room[e]` has that class; `remote` only if `remote_room` (Initiator) has room for it: for reads, and for writes. One
    that is begun may wait for those of other classes.
    `issued` pulses with each piece that leaves, `last` with it on the last piece of its descriptor.
    `read_bytes`, `written_bytes`: HBM bytes of the piece that leaves in this cycle.
    A row goes to the mover that owns the destination's partition; from SBUF to HBM to that of the source's;
    from HBM to HBM to each in turn, also from one descriptor to the next.
    With dma.indirect `ask[c]` and `answer` bring indices from SBUF for class c. A row that they leave out goes to no
    mover, but to `left_out` as if it had committed; `bad`: its index, at `bad_at`, is a fault.
    Timing: a piece a cycle, the first one in the cycle after `job` was taken; no gap between descriptors.
    """

    def __init__(self, cfg: Config, *, link: bool = False):
        self.cfg = cfg
        self.link = link
        row = stream.Signature(row_layout(cfg))
        remote = {"remote": Out(stream.Signature(remote_row(cfg))), "remote_room": In(CLASSES).array(2)} if link else {}
        indirect = {
            "ask": Out(stream.Signature(fetch_layout(cfg))).array(cfg.dma.classes),
            "answer_valid": In(cfg.dma.classes),
            "answer": In(128),
            "left_out": Out(stream.Signature(done_layout(cfg))),
            "bad": Out(1),
            "bad_at": Out(INDEX_PLACE_BITS),
        }
        super().__init__(
            {
                "job": In(stream.Signature(job_layout(cfg, link=link))),
                "parked": Out(CLASSES),
                "row": Out(row).array(cfg.dma.engines),
                "class_": Out(range(CLASSES)),
                "room": In(CLASSES).array(cfg.dma.engines),
                "issued": Out(1),
                "last": Out(1),
                "slot": Out(slot_bits(cfg)),
                "read_bytes": Out(ROW_BYTES_BITS),
                "written_bytes": Out(ROW_BYTES_BITS),
                "busy": Out(1),
                **remote,
                **(indirect if cfg.dma.indirect else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        contexts: list[RowContext] = []
        for c in range(cfg.dma.classes):
            m.submodules[f"context{c}"] = context = RowContext(cfg, link=self.link)
            contexts.append(context)
            m.d.comb += [
                context.job.valid.eq(self.job.valid & (self.job.payload.class_ == c)),
                context.job.payload.eq(self.job.payload),
                self.parked[c].eq(context.parked),
            ]
            with m.If(self.job.payload.class_ == c):
                m.d.comb += self.job.ready.eq(context.job.ready)

        # Which mover: the upper bits of the partition, or a turn.
        step = Signal()  # a piece leaves
        turn = Signal(ceil_log2(cfg.dma.engines))
        # It goes on over descriptors, so that those of one row do not all meet at mover 0.
        with m.If(step):
            m.d.sync += turn.eq(turn + 1)
        m.submodules.pick = pick = RoundRobin(cfg.dma.classes)
        movers: list[Signal] = []
        if cfg.dma.indirect:
            m.submodules.left_out = gone = Fifo(done_layout(cfg), 2)
        for c, context in enumerate(contexts):
            mover = Signal.like(turn, name=f"mover{c}")
            m.d.comb += mover.eq(self._mover(context.piece.payload, turn))
            movers.append(mover)
            room = Cat(room[c] for room in self.room).bit_select(mover, 1)
            if self.link:
                away = context.piece.payload.away
                room = Mux(away == 0, room, Mux(away[0], self.remote_room[1][c], self.remote_room[0][c]))
            if cfg.dma.indirect:
                room = Mux(context.piece.payload.left_out, gone.i.ready, room)
                wiring.connect(m, context.ask, wiring.flipped(self.ask[c]))
                m.d.comb += [context.answer_valid.eq(self.answer_valid[c]), context.answer.eq(self.answer)]
            m.d.comb += [
                pick.requests[c].eq(context.piece.valid & room),
                context.piece.ready.eq(pick.grant[c] & step),
            ]

        held = Signal(piece_layout(cfg, link=self.link))
        mover = Signal.like(turn)
        m.d.comb += pick.accept.eq(1)
        for c, context in enumerate(contexts):
            with m.If(pick.grant[c]):
                m.d.comb += [held.eq(context.piece.payload), mover.eq(movers[c]), self.class_.eq(c)]

        goes = pick.grant.any()
        here: Value = Const(1)  # both ends are in this core
        if self.link:
            here = held.away == 0
        moves: Value = Const(1)  # it is a row to move
        if cfg.dma.indirect:
            moves = ~held.left_out
            wiring.connect(m, gone.o, wiring.flipped(self.left_out))
            m.d.comb += [
                gone.i.valid.eq(goes & held.left_out),
                gone.i.payload.slot.eq(held.slot),
                self.bad.eq(goes & held.bad),
                self.bad_at.eq(held.at),
            ]
        for e, row in enumerate(self.row):
            m.d.comb += row.valid.eq(goes & (mover == e) & here & moves)
            m.d.comb += [
                getattr(row.payload, name).eq(getattr(held, name))
                for name in ("slot", "from_sbuf", "to_sbuf", "source", "destination", "bytes", "add")
            ]
        m.d.comb += step.eq(goes)
        from_hbm: Value = ~held.from_sbuf & moves
        to_hbm: Value = ~held.to_sbuf & moves
        if self.link:
            from_hbm = from_hbm & ~held.away[1]
            to_hbm = to_hbm & ~held.away[0]
            self._remote(m, held, goes & ~here)
            with m.If(~here):
                m.d.comb += step.eq(goes & self.remote.ready)
        m.d.comb += [
            self.issued.eq(step),
            self.last.eq(held.last),
            self.slot.eq(held.slot),
            self.read_bytes.eq(Mux(step & from_hbm, held.bytes, 0)),
            self.written_bytes.eq(Mux(step & to_hbm, held.bytes, 0)),
            self.busy.eq(Cat(context.busy for context in contexts).any()),
        ]
        return m

    def _mover(self, piece: View, turn: Signal) -> Value:
        shift = PARTITION_SHIFT + lane_bits(self.cfg)
        return Mux(piece.to_sbuf, piece.destination[shift:], Mux(piece.from_sbuf, piece.source[shift:], turn))

    def _remote(self, m: Module, held: View, valid: Value) -> None:
        row = self.remote.payload
        writes = held.away[0]
        far = Mux(writes, held.destination, held.source)
        m.d.comb += [
            self.remote.valid.eq(valid),
            row.write.eq(writes),
            row.local_sbuf.eq(Mux(writes, held.from_sbuf, held.to_sbuf)),
            row.local.eq(Mux(writes, held.source, held.destination)),
            row.remote[:40].eq(far),
            row.remote[40:].eq(held.far),
        ]
        m.d.comb += [
            getattr(row, name).eq(getattr(held, name))
            for name in ("slot", "bytes", "add", "class_", "last", "signals", "signal")
        ]
