"""Sending end of the lanes: flits to words, markers between them."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.lanes import LANE_WORD_BYTES, NO_LANE, PHYSICAL_LANES_MAX, VERSIONS
from rtl.contract.link import MARKER_INTERVAL_FLITS
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout, lanes_layout, physical_lanes
from rtl.link.lanes.lane_map import LaneMap, width_bits, widths
from rtl.link.lanes.marker import MarkerWriter
from rtl.link.lanes.scrambler import Scrambler

__all__ = ["LaneSender"]


class LaneSender(wiring.Component):
    """Beats at `i` to a word on every physical lane, scrambled; a marker on all of them after every `interval` flits.

    While `align`, markers follow each other, from the end of the flit under way on; after it one more comes before
    the first flit. mask: lanes that the partner receives well (0 unknown); the map it asks for comes with a marker.
    hear, here: what this end receives; the markers say so. width: lanes in use now.
    Timing: a beat taken in cycle n begins at `lanes` in n + 2; beat_bytes / (8 * width) cycles a beat.
    """

    def __init__(self, cfg: LinkConfig, interval: int = MARKER_INTERVAL_FLITS):
        self.cfg = cfg
        self.interval = interval
        self.physical = physical_lanes(cfg)
        super().__init__(
            {
                "i": In(stream.Signature(beat_layout(cfg))),
                "align": In(1),
                "mask": In(self.physical),
                "hear": In(self.physical),
                "here": In(1),
                "valid": Out(1),
                "lanes": Out(lanes_layout(cfg)),
                "width": Out(5),
                "version": Out(range(VERSIONS)),
                "sent_marker": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.map = lane_map = LaneMap(cfg)
        m.submodules.writer = writer = MarkerWriter(cfg)
        m.submodules.scrambler = scrambler = Scrambler(self.physical, "sender")
        m.d.comb += lane_map.mask.eq(Mux(fault("the mask of the partner is not obeyed"), 0, self.mask))

        # The map in use.
        everywhere = (1 << self.physical) - 1
        used = Signal(self.physical, init=everywhere)  # the mask it comes from
        width = Signal(3, init=width_bits(cfg))
        logical = Signal(data.ArrayLayout(unsigned(5), self.physical), init=self._first_map())
        changes = Signal()
        toggle = Signal()
        m.d.comb += [changes.eq(lane_map.of != used), self.width.eq(1 << width)]

        # What goes in this cycle: a marker, a word of the beat that is held, or nothing.
        beat = Signal(beat_layout(cfg))
        full = Signal()
        inside = Signal()  # a flit has begun
        due = Signal(init=1)
        flits = Signal(range(self.interval))
        step = Signal(range(cfg.beat_bytes // LANE_WORD_BYTES))
        last_step = Signal()
        mark = Signal()
        go = Signal()
        m.d.comb += [
            mark.eq(~inside & (self.align | due)),
            go.eq(full & ~mark),
            self.i.ready.eq(~full | (go & last_step)),
            scrambler.step.eq(go),
            scrambler.restart.eq(mark),
        ]
        with m.If(self.i.ready):
            m.d.sync += [full.eq(self.i.valid), beat.eq(self.i.payload)]
        with m.If(go):
            m.d.sync += [inside.eq(1), step.eq(Mux(last_step, 0, step + 1))]
            with m.If(last_step & beat.last):
                m.d.sync += [inside.eq(0), flits.eq(flits + 1)]
                with m.If(flits == self.interval - 1):
                    m.d.sync += due.eq(1)

        m.d.comb += [
            writer.en.eq(mark),
            writer.logical.eq(Mux(changes, Value.cast(lane_map.logical), Value.cast(logical))),
            writer.common.mask.eq(Cat(self.hear)[:PHYSICAL_LANES_MAX]),
            writer.common.version.eq(self.version + changes),
            writer.common.width.eq(Mux(changes, lane_map.width, width)),
            writer.common.more.eq(self.align),
            writer.common.here.eq(self.here),
            writer.common.toggle.eq(toggle),
        ]
        with m.If(mark):
            m.d.sync += [due.eq(self.align), flits.eq(0), toggle.eq(~toggle)]
        with m.If(changes & (mark | fault("the map changes between markers"))):
            m.d.sync += [
                used.eq(lane_map.of),
                width.eq(lane_map.width),
                logical.eq(lane_map.logical),
                self.version.eq(self.version + 1),
            ]

        m.d.sync += [self.valid.eq(go | mark), self.sent_marker.eq(mark)]
        words = self._words(m, beat, go, last_step, step, width)
        for p in range(self.physical):
            word = Signal(64, name=f"carried{p}")
            with m.Switch(logical[p]):
                for lane in range(min(p, cfg.lanes - 1) + 1):
                    with m.Case(lane):
                        m.d.comb += word.eq(words[lane])
            m.d.sync += self.lanes[p].eq(Mux(mark, writer.words[p], word ^ scrambler.key[p]))
        return m

    def _first_map(self) -> list[int]:
        return [p if p < self.cfg.lanes else NO_LANE for p in range(self.physical)]

    def _words(
        self, m: Module, beat: data.View, go: Signal, last_step: Signal, step: Signal, width: Signal
    ) -> list[Signal]:
        """By logical lane the 8 bytes that go next. What has gone is shifted out of the beat."""
        size = self.cfg.beat_bytes
        held = beat.data
        words = [Signal(64, name=f"word{lane}") for lane in range(self.cfg.lanes)]
        with m.Switch(width):
            for n, lanes in enumerate(widths(self.cfg)):
                with m.Case(n):
                    bytes_ = LANE_WORD_BYTES * lanes
                    m.d.comb += last_step.eq(step == size // bytes_ - 1)
                    if bytes_ < size:
                        with m.If(go & ~last_step):
                            m.d.sync += held.eq(held[8 * bytes_ :])
                    for lane in range(lanes):
                        picked = [held.word_select(lane + lanes * j, 8) for j in range(LANE_WORD_BYTES)]
                        m.d.comb += words[lane].eq(Cat(picked))
        return words
