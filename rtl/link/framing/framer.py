"""Units become flits: header, words of packets, END, zeros where DLP and codes will be."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX, PacketOpcode
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout
from rtl.link.framing.framing import (
    FLIT_HEADER_LAYOUT,
    FLIT_WORDS,
    HEADER_WORDS,
    WORD_BITS,
    rows_of,
    unit_layout,
)

__all__ = ["Framer"]


class Framer(wiring.Component):
    """Reads a unit that SendQueues gave, and sends its flits at `o`, a beat a cycle, one unit behind the other.

    `start` in the cycle of SendQueues.take, allowed while `ready`; `unit` is valid from the next cycle on. With the
    first read of a flit `spend` names the `account` that it is charged to: `charge` 1 the dedicated one of `queue`,
    0 the shared one of its kind. `clear` gives up the unit under way and tells with `cut` how many of its flits had
    not left as a whole; their places are released, one a cycle.
    Timing: the first beat is at `o` two cycles after `start`.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "ready": Out(1),
                "start": In(1),
                "unit": In(unit_layout(cfg)),
                "read": Out(1),
                "read_beat": Out(range(cfg.beats)),
                "release": Out(1),
                "data": In(8 * cfg.beat_bytes),
                "queue": Out(range(cfg.queues)),
                "charge": In(1),
                "spend": Out(1),
                "account": Out(range(cfg.accounts)),
                "o": Out(stream.Signature(beat_layout(cfg))),
                "clear": In(1),
                "cut": Out(range(UNIT_FLITS_MAX + 2)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        lanes = rows_of(cfg).lanes
        unit = self.unit
        active = Signal()
        gives_up = Signal()
        flit = Signal(range(UNIT_FLITS_MAX))
        beat = Signal(range(cfg.beats))
        moves = Signal()
        tail = Signal()
        ends = Signal()  # the last beat of a flit is read
        shown = Signal()  # a beat is at o

        m.d.comb += [
            moves.eq(~shown | self.o.ready | fault("the framer sends the next beat over one that was not taken")),
            tail.eq(flit == (unit.flits - 1)[:2]),
            ends.eq((beat == cfg.beats - 1) & self.read),
            self.read.eq(active & ~gives_up & moves),
            self.read_beat.eq(beat),
            self.release.eq(ends | (active & gives_up & ~fault("a flit given up is not released"))),
            self.ready.eq(~active | (self.release & tail)),
            self.queue.eq(unit.queue),
            self.spend.eq(self.read & (beat == 0)),
            self.account.eq(Mux(self.charge, unit.queue, cfg.queues + unit.queue[0])),
            self.busy.eq(active | shown),
        ]
        with m.If(self.read):
            m.d.sync += beat.eq(beat + 1)
        with m.If(self.release | (active & gives_up)):
            m.d.sync += flit.eq(Mux(tail, 0, flit + 1))
            with m.If(tail):
                m.d.sync += [active.eq(0), gives_up.eq(0)]
        with m.If(self.start):
            m.d.sync += active.eq(1)

        # Beside the row that is read: which lanes are words, where END stands, the header
        header = Signal(FLIT_HEADER_LAYOUT)
        header_kept = Signal(FLIT_HEADER_LAYOUT)
        words = Signal(range(FLIT_WORDS + 1))
        keep = Signal(lanes)
        keep_kept = Signal(lanes)
        stop = Signal(lanes)
        stop_kept = Signal(lanes)
        first = Signal()
        last = Signal()
        before = Signal(8)
        with m.Switch(flit):
            for f in range(UNIT_FLITS_MAX):
                with m.Case(f):
                    m.d.comb += [before.eq(FLIT_WORDS * f), header.offset.eq(unit.offsets[f])]
        m.d.comb += [
            words.eq(Mux(tail, unit.words - before, FLIT_WORDS)),
            header.tail.eq(tail & ~fault("the last flit of a unit is no tail")),
            header.head.eq(flit == 0),
            header.dedicated.eq(
                self.charge & ~fault("the framer names the shared pool in a header and charges the dedicated one")
            ),
            header.kind.eq(unit.queue[0]),
            header.vc.eq(unit.queue[1:]),
            header.class_.eq(unit.queue[1:]),
            header.endpoint.eq(unit.endpoint),
        ]
        with m.Switch(beat):
            for b in range(cfg.beats):
                with m.Case(b):
                    for lane in range(lanes):
                        at = b * lanes + lane
                        if 1 <= at <= FLIT_WORDS:
                            m.d.comb += keep[lane].eq(
                                (at <= words) | fault("words behind the end of the unit are sent")
                            )
                        if 1 < at <= FLIT_WORDS - HEADER_WORDS + 1:
                            m.d.comb += stop[lane].eq((at == words + 1) & ~fault("no END where there is room for it"))
        with m.If(self.read):
            m.d.sync += [
                header_kept.eq(header),
                keep_kept.eq(keep),
                stop_kept.eq(stop),
                first.eq(beat == 0),
                last.eq(beat == cfg.beats - 1),
            ]
        mask = Cat(k.replicate(WORD_BITS) for k in keep_kept)
        end = Cat(Cat(s.replicate(4), Const(0, WORD_BITS - 4)) for s in stop_kept)
        assert PacketOpcode.END == 0xF
        m.d.comb += [
            self.o.valid.eq(shown),
            self.o.payload.first.eq(first),
            self.o.payload.last.eq(last),
            self.o.payload.data.eq((self.data & mask) | end | Mux(first, header_kept, 0)),
        ]
        with m.If(moves):
            m.d.sync += shown.eq(self.read)

        # Flits of the units that were started and have not left as a whole
        owed = Signal(range(UNIT_FLITS_MAX + 2))
        owes = Signal.like(owed)
        fresh = Signal()  # the unit's size is known now
        m.d.sync += fresh.eq(self.start)
        leaves = self.o.valid & self.o.ready & self.o.payload.last
        m.d.comb += owes.eq(owed + Mux(fresh, unit.flits, 0) - leaves)
        m.d.sync += owed.eq(owes)
        with m.If(self.clear):
            m.d.comb += self.cut.eq(owes)
            m.d.sync += [owed.eq(0), shown.eq(0), beat.eq(0), gives_up.eq(active & ~(self.release & tail))]
        return m
