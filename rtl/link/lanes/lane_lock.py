"""What the markers say: where flits begin, the map of the partner, its mask; which lanes agree."""

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.arbiter import lowest
from rtl.base.fault import fault
from rtl.contract.lanes import VERSIONS
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import lanes_layout, physical_lanes
from rtl.link.lanes.lane_map import width_bits
from rtl.link.lanes.marker import MARKER_LAYOUT, MarkerReader

__all__ = ["LaneLock", "Mode"]


class Mode(enum.IntEnum, shape=2):
    """What the words of a receiver are."""

    HUNT = 0  # unknown
    MARKERS = 1  # markers back to back
    FLITS = 2


class LaneLock(wiring.Component):
    """Follows markers: `valid`, `lanes` are the words; `expected`: in FLITS the next word is a marker.

    mode: what the word in this cycle is; data: it belongs to a flit; marker: it is a marker time, the lanes in `seen`
    show a marker that agrees with the others; found: the first two markers back to back; lost: markers were missing on
    all lanes twice. The map changes with a marker whose version is new and in which every logical lane appears.
    Timing: data, marker, seen, found and lost are combinational, the rest registers.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.physical = physical_lanes(cfg)
        super().__init__(
            {
                "valid": In(1),
                "lanes": In(lanes_layout(cfg)),
                "expected": In(1),
                "dead": In(self.physical),
                "mode": Out(Mode),
                "data": Out(1),
                "marker": Out(1),
                "seen": Out(self.physical),
                "found": Out(1),
                "lost": Out(1),
                "changed": Out(1),
                "width": Out(3, init=width_bits(cfg)),
                "source": Out(data.ArrayLayout(unsigned(5), cfg.lanes)),
                "version": Out(range(VERSIONS)),
                "partner_mask": Out(self.physical),
                "partner_here": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = MarkerReader(self.cfg)
        ok, mode = reader.ok, self.mode
        views = [data.View(MARKER_LAYOUT, self.lanes[p]) for p in range(self.physical)]
        more = Signal(self.physical)
        toggle = Signal(self.physical)
        again = Signal(self.physical)  # the word before was a marker too, another one and with `more`
        before = Signal(self.physical)
        before_toggle = Signal(self.physical)
        m.d.comb += [reader.words[p].eq(self.lanes[p]) for p in range(self.physical)]
        for p, view in enumerate(views):
            m.d.comb += [more[p].eq(view.more), toggle[p].eq(view.toggle)]
        m.d.comb += again.eq(ok & before & (toggle ^ before_toggle))
        with m.If(self.valid):
            m.d.sync += [before.eq(ok & more), before_toggle.eq(toggle)]

        due = Signal()
        silent = Signal()  # the last marker was missing on all lanes
        m.d.comb += [
            self.found.eq(self.valid & (mode != Mode.MARKERS) & (again & more).any()),
            due.eq(
                (mode == Mode.FLITS)
                & self.expected
                & (ok.any() | ~fault("a marker that is missing on all lanes counts as a word of a flit"))
            ),
            self.marker.eq(self.valid & ((mode == Mode.MARKERS) | due | self.found)),
            self.data.eq(self.valid & (mode == Mode.FLITS) & ~due & ~self.found),
            self.lost.eq(self.marker & ~ok.any() & silent),
        ]
        with m.If(self.marker):
            m.d.sync += silent.eq(~ok.any())

        # The lane whose word counts: the lowest that is alive; back to back one that does not repeat itself.
        trusted = Signal(self.physical)
        chosen = Signal(self.physical)
        alive = Signal(self.physical)
        told = Signal(MARKER_LAYOUT)
        complete = Signal()
        new_source = [Signal(5, name=f"from{lane}") for lane in range(self.cfg.lanes)]
        m.d.comb += alive.eq(Mux(self.expected & (mode == Mode.FLITS), ok & ~self.dead, again))
        m.d.comb += trusted.eq(Mux(alive.any(), alive, ok))
        m.d.comb += chosen.eq(lowest(trusted))
        with m.If(self.marker & ok.any()):
            picked: Value = Value.cast(0)
            for p in range(self.physical):
                picked = picked | Mux(chosen[p], self.lanes[p], 0)
            m.d.comb += told.eq(picked)
            for p, view in enumerate(views):
                same_map = (view.version == told.version) & (view.width == told.width) & (view.toggle == told.toggle)
                m.d.comb += self.seen[p].eq(ok[p] & (same_map | fault("the version of the map is not compared")))
            shown = Signal(self.cfg.lanes)
            for lane, place in enumerate(new_source):
                for p in reversed(range(lane, self.physical)):
                    with m.If(self.seen[p] & (views[p].logical == lane)):
                        m.d.comb += [place.eq(p), shown[lane].eq(1)]
            with m.Switch(told.width):
                for n in range(width_bits(self.cfg) + 1):
                    with m.Case(n):
                        m.d.comb += complete.eq(shown[: 1 << n].all())

        with m.If(self.marker & ok.any()):
            m.d.sync += [self.partner_mask.eq(told.mask), self.partner_here.eq(told.here)]
            # Back to back the map counts whatever its version: the partner may have started anew.
            in_flits = (mode == Mode.FLITS) & ~self.found
            takes = (mode != Mode.FLITS) | self.found | (told.version != self.version)
            m.d.comb += self.changed.eq(
                complete & takes & ~(in_flits & fault("markers between flits do not change the map"))
            )
            m.d.sync += mode.eq(Mux(told.more, Mode.MARKERS, Mode.FLITS))
        with m.Elif(self.lost):
            m.d.sync += mode.eq(Mode.HUNT)
        with m.If(self.changed):
            m.d.sync += [self.width.eq(told.width), self.version.eq(told.version)]
            m.d.sync += [self.source[lane].eq(place) for lane, place in enumerate(new_source)]
        return m
