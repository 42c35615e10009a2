"""Sequencer: rows become steps of 16 bytes, one a cycle, with no gap between rows."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.contract.config import Config
from rtl.dma.layouts import PARTITION_SHIFT, Place, fetch_layout, row_layout, step_layout

__all__ = ["Sequencer"]

_UNITS_BITS = 16  # 16-byte units that a row touches


class Sequencer(wiring.Component):
    """Decides each cycle whether the next step of the current row can be made, and asks for its data.

    Source bytes stand at s = source mod 16, destination bytes at d = destination mod 16. If d >= s, step j
    sends unit j of the destination; if d < s, the first step only takes, and step j + 1 sends unit j.
    A row has max(units of source, units of destination) steps, or one more if it is late and ends early.
    `step_valid` and `step` follow one cycle after the decision: with the data of SBUF and of the beat.
    `beat_*`: see Reader. `own_*`: read port of the own partitions. `other_start` opens a row in another
    mover's partitions: `other_count` units from `fetch`; they come by `other_valid`, `other_take`.
    Timing: a step a cycle while `room`, and the source has its data.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "index": In(4),
                "row": In(stream.Signature(row_layout(cfg))),
                "beat_there": In(1),
                "beat_take": Out(1),
                "own_valid": Out(1),
                "own_ready": In(1),
                "fetch": Out(fetch_layout(cfg)),
                "other_start": Out(1),
                "other_count": Out(_UNITS_BITS),
                "other_valid": In(1),
                "other_take": Out(1),
                "room": In(1),
                "step_valid": Out(1),
                "step": Out(step_layout(cfg)),
                "moves": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        per_beat = ceil_log2(cfg.hbm.port_bytes // 16)
        row = self.row.payload
        step = Signal(step_layout(cfg))  # of this cycle
        busy = Signal()
        place = Signal(2)
        takes = Signal(_UNITS_BITS)  # units still to take
        emits = Signal(_UNITS_BITS)
        prime = Signal()  # the next step only takes
        opening = Signal()  # nothing of the row was sent yet
        fresh = Signal()  # the next unit is the first of a beat
        began = Signal()  # the units of another mover were asked for
        source = Signal.like(row.source)
        to = Signal.like(step.to)
        head = Signal(4)
        tail = Signal(4)
        turn = Signal(4)
        to_sbuf = Signal()
        add = Signal(2)
        slot = Signal.like(row.slot)

        group = ceil_log2(cfg.dma.engines)
        m.d.comb += [
            self.fetch.pair.eq(source[4:PARTITION_SHIFT]),
            self.fetch.lane.eq(source[PARTITION_SHIFT:]),
            self.fetch.group.eq(source[PARTITION_SHIFT + len(self.fetch.lane) :]),
        ]

        there = Signal()
        go = Signal()
        load = Signal()
        m.d.comb += [
            step.take.eq(takes != 0),
            step.place.eq(place),
            step.emit.eq(~prime),
            step.turn.eq(turn),
            step.head.eq(Mux(opening, head, 0)),
            step.last.eq(step.emit & (emits == 1)),
            step.tail.eq(Mux(step.last, tail, 15)),
            step.to_sbuf.eq(to_sbuf),
            step.add.eq(add),
            step.to.eq(to),
            step.slot.eq(slot),
            self.own_valid.eq(busy & self.room & step.take & (place == Place.OWN)),
            self.other_start.eq(busy & ~began & (place == Place.OTHER)),
            self.other_count.eq(takes),
            self.other_take.eq(go & step.take & (place == Place.OTHER)),
            self.beat_take.eq(go & step.take & (place == Place.HBM) & fresh),
            go.eq(busy & self.room & (~step.take | there)),
            load.eq(self.row.valid & self.row.ready),
            self.row.ready.eq(~busy | (go & step.last)),
            self.moves.eq(go),
        ]
        if per_beat:
            m.d.comb += step.unit.eq(source[4 : 4 + per_beat])
        with m.Switch(place):
            with m.Case(Place.HBM):
                m.d.comb += there.eq(~fresh | self.beat_there)
            with m.Case(Place.OWN):
                m.d.comb += there.eq(self.own_ready)
            with m.Default():
                m.d.comb += there.eq(self.other_valid & began)

        m.d.sync += self.step_valid.eq(go)
        with m.If(go):
            m.d.sync += [
                self.step.eq(step),
                takes.eq(takes - step.take),
                emits.eq(emits - step.emit),
                prime.eq(0),
            ]
            with m.If(step.take):
                m.d.sync += [
                    source[4:].eq(source[4:] + 1),
                    fresh.eq(source[4 : 4 + per_beat].all() if per_beat else 1),
                ]
            with m.If(step.emit):
                m.d.sync += [to.eq(to + 1), opening.eq(0)]
        with m.If(self.other_start):
            m.d.sync += began.eq(1)

        # The next row is made ready in the cycle of the last step.
        s = row.source[:4]
        d = row.destination[:4]
        owner = row.source[PARTITION_SHIFT + len(self.fetch.lane) :][:group]
        with m.If(load):
            m.d.sync += [
                busy.eq(1),
                place.eq(Mux(row.from_sbuf, Mux(owner == self.index, Place.OWN, Place.OTHER), Place.HBM)),
                takes.eq((s + row.bytes + 15) >> 4),
                emits.eq((d + row.bytes + 15) >> 4),
                prime.eq(d < s),
                opening.eq(1),
                fresh.eq(1),
                began.eq(0),
                source.eq(row.source),
                to.eq(row.destination >> 4),
                head.eq(d),
                tail.eq(d + row.bytes - 1),
                turn.eq(d - s),
                to_sbuf.eq(row.to_sbuf),
                add.eq(row.add),
                slot.eq(row.slot),
            ]
        with m.Elif(go & step.last):
            m.d.sync += busy.eq(0)
        return m
