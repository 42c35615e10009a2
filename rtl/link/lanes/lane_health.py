"""Health of lanes: FEC corrections and missing markers, by physical lane."""

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.lanes import MISSES_DEAD, MISSES_OF, WEAK_RATIO
from rtl.contract.link import FEC_GROUPS
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import physical_lanes
from rtl.link.lanes.lane_map import widths

__all__ = ["FIX", "LaneHealth"]

FIX = data.ArrayLayout(data.StructLayout({"hit": 1, "byte": 8}), FEC_GROUPS)
"""Bytes of a flit that the FEC located, one a group."""

_COUNT = 16
_RECENT = 12  # 3 corrections a flit, 1,024 flits between two markers


class LaneHealth(wiring.Component):
    """`weak`: corrections between two markers single the lane out, and what is left carries more. `dead`: too many
    markers missing.

    At a marker the lane in use with the most corrections since the last one becomes weak, until `clear`, if it has
    cfg.weak_corrections of them and WEAK_RATIO times those of at least half of the lanes in use, and if the good lanes
    without it are as many as are in use, or most flits were lost: then half the width carries more.
    fix_valid: once a flit; fix_lost: it was refused or is behind a gap. width, source: map in use; a flit decoded after
    a change of the map counts by the new one. marker: the lanes in `seen` showed their marker. found: the partner
    begins to send markers back to back, so every lane is alive until it misses them. mask: lanes neither weak nor dead;
    if that is none, those not dead.
    Timing: registers; mask follows weak and dead in the same cycle.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.lanes = physical_lanes(cfg)
        super().__init__(
            {
                "fix_valid": In(1),
                "fix_lost": In(1),
                "fix": In(FIX),
                "width": In(3),
                "source": In(data.ArrayLayout(unsigned(5), cfg.lanes)),
                "marker": In(1),
                "seen": In(self.lanes),
                "found": In(1),
                "clear": In(1),
                "weak": Out(self.lanes),
                "dead": Out(self.lanes),
                "mask": Out(self.lanes),
                "corrections": Out(data.ArrayLayout(unsigned(_COUNT), self.lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        where = [Signal(5, name=f"where{k}") for k in range(FEC_GROUPS)]
        hits = Signal(FEC_GROUPS)
        with m.If(self.fix_valid):
            for k, place in enumerate(where):
                logical = Signal(4, name=f"logical{k}")
                with m.Switch(self.width):
                    for n, _ in enumerate(widths(self.cfg)):
                        with m.Case(n):
                            m.d.comb += logical.eq(self.fix[k].byte[:n])
                with m.Switch(logical):
                    for lane in range(self.cfg.lanes):
                        with m.Case(lane):
                            m.d.comb += place.eq(self.source[lane])
                m.d.comb += hits[k].eq(self.fix[k].hit)

        most_recent = (1 << _RECENT) - 1
        recents = [Signal(_RECENT, name=f"recent{lane}") for lane in range(self.lanes)]
        leaves = self._leaves(m, recents)
        for lane, recent in enumerate(recents):
            missed = Signal(MISSES_OF - 1, name=f"missed{lane}")  # of the markers before, the last one lowest
            new = Signal(2, name=f"new{lane}")
            m.d.comb += new.eq(sum(hits[k] & (place == lane) for k, place in enumerate(where)))
            with m.If(hits.any()):
                total = Signal(_COUNT + 1, name=f"total{lane}")
                m.d.comb += total.eq(self.corrections[lane] + new)
                m.d.sync += self.corrections[lane].eq(Mux(total[_COUNT], ~0, total))
                with m.If(recent <= most_recent - FEC_GROUPS):
                    m.d.sync += recent.eq(recent + new)
            with m.If(self.marker):
                miss = ~self.seen[lane]
                m.d.sync += [recent.eq(0), missed.eq(missed << 1 | miss)]
                with m.If(leaves[lane] & ~fault("a weak lane is not noticed")):
                    m.d.sync += self.weak[lane].eq(1)
                with m.If(miss & (sum(missed) >= MISSES_DEAD - 1) & ~fault("a dead lane is not noticed")):
                    m.d.sync += self.dead[lane].eq(1)
            with m.If(self.found):
                m.d.sync += [missed.eq(0), self.dead[lane].eq(0)]
            with m.If(self.clear):
                m.d.sync += [recent.eq(0), self.weak[lane].eq(0)]
        strong = Signal(self.lanes)
        m.d.comb += [strong.eq(~self.weak & ~self.dead), self.mask.eq(Mux(strong.any(), strong, ~self.dead))]
        return m

    def _more(self, m: Module, a: tuple[Value, Value], b: tuple[Value, Value]) -> tuple[Value, Value]:
        """Count and lane with the larger count, the first of them if they are equal."""
        count, lane = Signal(_RECENT, name="more"), Signal(range(self.lanes), name="more_lane")
        m.d.comb += [count.eq(a[0]), lane.eq(a[1])]
        with m.If(b[0] > a[0]):
            m.d.comb += [count.eq(b[0]), lane.eq(b[1])]
        return count, lane

    def _leaves(self, m: Module, recents: list[Signal]) -> Signal:
        """The lane that becomes weak at this marker, one hot; 0 if none does. Much to compute, so only then."""
        flits, lost = Signal(_RECENT), Signal(_RECENT)  # since the last marker
        with m.If(self.marker | self.clear):
            m.d.sync += [flits.eq(0), lost.eq(0)]
        with m.Elif(self.fix_valid & ~flits.all()):
            m.d.sync += [flits.eq(flits + 1), lost.eq(lost + self.fix_lost)]

        lanes = range(self.lanes)
        leaves, used, left = Signal(self.lanes), Signal(self.lanes), Signal(self.lanes)
        worst, count = Signal(range(self.lanes)), Signal(_RECENT)
        in_use, good, low = Signal(5), Signal(5), Signal(5)
        apart, spare, more = Signal(), Signal(), Signal()
        best: list[tuple[Value, Value]] = []
        for lane, recent in enumerate(recents):
            able = used[lane] & ~self.weak[lane] & ~self.dead[lane]
            count_able = Signal(_RECENT, name=f"able{lane}")
            m.d.comb += count_able.eq(Mux(able, recent, 0))
            best.append((count_able, Value.cast(lane)))
        with m.If(self.marker):
            while len(best) > 1:
                best = [self._more(m, *pair) for pair in zip(best[::2], best[1::2])] + best[len(best) // 2 * 2 :]
            for n, place in enumerate(self.source):
                with m.If(n < in_use):
                    m.d.comb += used.bit_select(place, 1).eq(1)
            m.d.comb += [
                in_use.eq(1 << self.width),
                count.eq(best[0][0]),
                worst.eq(best[0][1]),
                left.eq(~self.weak & ~self.dead & ~(1 << worst)),
                good.eq(sum(left[lane] for lane in lanes)),
                low.eq(sum(used[lane] & (recents[lane] * WEAK_RATIO <= count) for lane in lanes)),
                apart.eq(
                    (low >= in_use >> 1) | fault("a lane is weak by its corrections alone, whatever the others have")
                ),
                spare.eq(
                    (good >= in_use) | fault("a lane leaves without a spare though the narrower width carries less")
                ),
                more.eq(
                    (lost << 1 > flits)
                    & left.any()
                    & ~fault("a lane stays without a spare though the narrower width carries more")
                ),
            ]
            with m.If((count >= self.cfg.weak_corrections) & apart & (spare | more)):
                m.d.comb += leaves.eq(1 << worst)
        return leaves
