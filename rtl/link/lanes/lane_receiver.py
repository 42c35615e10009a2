"""Receiving end of the lanes: words to flits, markers followed, bad lanes named."""

from amaranth.hdl import Module, Mux, Signal, Value, ValueLike, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.lanes import ALIGN_MARKERS, CALL_FLITS, QUIET_FLITS, VERSIONS
from rtl.contract.link import MARKER_INTERVAL_FLITS
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout, lanes_layout, physical_lanes
from rtl.link.lanes.lane_health import FIX, LaneHealth
from rtl.link.lanes.lane_lock import LaneLock, Mode
from rtl.link.lanes.lane_map import LaneMap
from rtl.link.lanes.lane_words import LaneWords
from rtl.link.lanes.scrambler import Scrambler

__all__ = ["LaneReceiver"]


class LaneReceiver(wiring.Component):
    """Words of the partner's lanes at `lanes` to beats at `o`; nothing holds it back.

    align: this end is in ALIGN. aligned: it may leave: both ends receive markers, and the partner's map is the one
    that `mask` asks for. realign (level, only without align): it should go there. fix_valid, fix: bytes that the FEC
    located, once a flit; fix_lost: it was refused or is behind a gap. clear: a new session, weak lanes may come back.
    locked, mask, partner_mask: for the own LaneSender. width, version: map in use.
    Timing: a beat at `o` two cycles after its last word at `lanes`.
    """

    def __init__(self, cfg: LinkConfig, interval: int = MARKER_INTERVAL_FLITS):
        self.cfg = cfg
        self.interval = interval
        self.physical = physical_lanes(cfg)
        super().__init__(
            {
                "valid": In(1),
                "lanes": In(lanes_layout(cfg)),
                "o_valid": Out(1),
                "o": Out(beat_layout(cfg)),
                "align": In(1),
                "aligned": Out(1),
                "realign": Out(1),
                "fix_valid": In(1),
                "fix_lost": In(1),
                "fix": In(FIX),
                "clear": In(1),
                "locked": Out(1),
                "mask": Out(self.physical),
                "partner_mask": Out(self.physical),
                "width": Out(5),
                "version": Out(range(VERSIONS)),
                "weak_lanes": Out(self.physical),
                "dead_lanes": Out(self.physical),
                "corrections": Out(data.ArrayLayout(unsigned(16), self.physical)),
                "markers": Out(16),
                "map_changes": Out(16),
                "missed": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.lock = lock = LaneLock(cfg)
        m.submodules.health = health = LaneHealth(cfg)
        m.submodules.words = words = LaneWords(cfg)
        m.submodules.scrambler = scrambler = Scrambler(self.physical, "receiver")
        m.submodules.wanted = wanted = LaneMap(cfg)

        valid = Signal()
        lanes = Signal(lanes_layout(cfg))
        m.d.sync += valid.eq(self.valid)
        with m.If(self.valid):
            m.d.sync += lanes.eq(self.lanes)

        flits = Signal(range(self.interval + 1))
        m.d.comb += [
            lock.valid.eq(valid),
            lock.lanes.eq(lanes),
            lock.expected.eq(flits == self.interval),
            lock.dead.eq(health.dead),
            scrambler.step.eq(lock.data),
            scrambler.restart.eq(lock.marker),
            words.en.eq(lock.data),
            words.restart.eq(lock.marker),
            words.lanes.eq(lanes),
            words.key.eq(scrambler.key),
            words.width.eq(lock.width),
            words.source.eq(lock.source),
            self.o_valid.eq(words.o_valid),
            self.o.eq(words.o),
        ]
        with m.If(lock.marker):
            m.d.sync += flits.eq(0)
        with m.Elif(words.flit_done):
            m.d.sync += flits.eq(flits + 1)

        m.d.comb += [
            health.fix_valid.eq(self.fix_valid),
            health.fix_lost.eq(self.fix_lost),
            health.fix.eq(self.fix),
            health.width.eq(lock.width),
            health.source.eq(lock.source),
            health.marker.eq(lock.marker),
            health.seen.eq(lock.seen),
            health.found.eq(lock.found),
            health.clear.eq(self.clear),
            self.weak_lanes.eq(health.weak),
            self.dead_lanes.eq(health.dead),
            self.corrections.eq(health.corrections),
            self.width.eq(1 << lock.width),
            self.version.eq(lock.version),
            self.partner_mask.eq(lock.partner_mask),
        ]

        # Dead lanes are measured anew when the partner aligns: the mask waits until that has been done.
        heard = Signal(range(ALIGN_MARKERS + 1))  # markers back to back
        with m.If(lock.found | lock.lost):
            m.d.sync += heard.eq(0)
        with m.Elif(lock.marker & (lock.mode == Mode.MARKERS) & (heard != ALIGN_MARKERS)):
            m.d.sync += heard.eq(heard + 1)
        with m.If((heard == ALIGN_MARKERS) & ~lock.found):
            m.d.sync += self.mask.eq(health.mask)
        m.d.comb += [self.locked.eq(heard == ALIGN_MARKERS), wanted.mask.eq(self.mask)]

        # Leaving and entering ALIGN.
        agreed = Signal()
        same = (wanted.width == lock.width) & (wanted.of == Mux(self.mask.any(), self.mask, (1 << self.physical) - 1))
        for lane in range(cfg.lanes):
            same = same & ((wanted.source[lane] == lock.source[lane]) | (lane >= 1 << lock.width))
        agrees = Signal()
        held = Signal(range(ALIGN_MARKERS + 1))
        was_align = Signal()
        with m.If(self.align):  # nobody asks otherwise, and it is much to compute
            m.d.comb += agreed.eq(same)
        m.d.comb += agrees.eq(self.locked & lock.partner_here & agreed & (lock.mode != Mode.HUNT))
        m.d.sync += was_align.eq(self.align)
        stale = self.align & ~was_align & (lock.mode != Mode.MARKERS)  # what is known is from the last time
        with m.If(stale):
            m.d.sync += heard.eq(0)
        with m.If(~agrees | stale):
            m.d.sync += held.eq(0)
        with m.Elif(valid & (held != ALIGN_MARKERS)):
            m.d.sync += held.eq(held + 1)
        m.d.comb += self.aligned.eq(self.align & was_align & (held == ALIGN_MARKERS) & agrees)

        flowed = Signal()  # flits have come since this end left ALIGN
        quiet = Signal(range(QUIET_FLITS * cfg.flit_cycles + 1))  # cycles without a beat
        called = Signal(range(CALL_FLITS * cfg.flit_cycles + 1))  # cycles of markers back to back
        calls = lock.mode == Mode.MARKERS
        with m.If(self.align | calls | words.o_valid):
            m.d.sync += quiet.eq(0)
        with m.Elif(quiet != QUIET_FLITS * cfg.flit_cycles):
            m.d.sync += quiet.eq(quiet + 1)
        with m.If(self.align | ~calls):
            m.d.sync += called.eq(0)
        with m.Elif(called != CALL_FLITS * cfg.flit_cycles):
            m.d.sync += called.eq(called + 1)
        with m.If(self.align | words.o_valid):
            m.d.sync += flowed.eq(~self.align)
        unheard = (called == CALL_FLITS * cfg.flit_cycles) | (quiet == QUIET_FLITS * cfg.flit_cycles)
        m.d.comb += self.realign.eq(~self.align & (lock.lost | (calls & flowed) | unheard))

        self._count(m, self.markers, lock.marker, 1)
        self._count(m, self.map_changes, lock.changed, 1)
        with m.If(lock.marker):
            misses = Signal(range(self.physical + 1))
            m.d.comb += misses.eq(sum(~lock.seen[p] for p in range(self.physical)))
            self._count(m, self.missed, 1, misses)
        return m

    @staticmethod
    def _count(m: Module, counter: Signal, en: ValueLike, by: ValueLike) -> None:
        """A counter that stops at its end."""
        total = Value.cast(counter + by)
        with m.If(en):
            m.d.sync += counter.eq(Mux(total[len(counter) :].any(), ~0, total))
