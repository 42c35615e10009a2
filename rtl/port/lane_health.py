"""Health of lanes: FEC corrections and missing markers, by physical lane."""

from amaranth.hdl import Module, Mux, Signal, ValueLike, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.plant import planted
from rtl.contract.lanes import MISSES_DEAD, MISSES_OF
from rtl.contract.link import FEC_GROUPS
from rtl.contract.link_config import LinkConfig
from rtl.port.beat import physical_lanes
from rtl.port.lane_map import widths

__all__ = ["FIX", "LaneHealth"]

FIX = data.ArrayLayout(data.StructLayout({"hit": 1, "byte": 8}), FEC_GROUPS)
"""Bytes of a flit that the FEC located, one a group."""

_COUNT = 16


class LaneHealth(wiring.Component):
    """`weak`: at least cfg.weak_corrections between two markers, until `clear`. `dead`: too many markers missing.

    fix_valid: once a flit. width, source: map in use; a flit decoded after a change of the map counts by the new one.
    marker: the lanes in `seen` showed their marker. found: the partner begins to send markers back to back, so every
    lane is alive until it misses them. mask: lanes neither weak nor dead; if that is none, those not dead.
    Timing: registers; mask follows weak and dead in the same cycle.
    """

    FAULTS = {1: "a dead lane is not noticed", 2: "a weak lane is not noticed"}

    def __init__(self, cfg: LinkConfig, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        self.lanes = physical_lanes(cfg)
        super().__init__(
            {
                "fix_valid": In(1),
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

        most = (1 << _COUNT) - 1
        limit = self.cfg.weak_corrections
        for lane in range(self.lanes):
            recent = Signal(range(limit + FEC_GROUPS + 1), name=f"recent{lane}")
            missed = Signal(MISSES_OF - 1, name=f"missed{lane}")  # of the markers before, the last one lowest
            new = Signal(2, name=f"new{lane}")
            m.d.comb += new.eq(sum(hits[k] & (place == lane) for k, place in enumerate(where)))
            with m.If(hits.any()):
                total = self.corrections[lane]
                m.d.sync += total.eq(Mux(total > most - FEC_GROUPS, most, total + new))
                with m.If(recent < limit):
                    m.d.sync += recent.eq(recent + new)
            with m.If((recent >= limit) & ~planted(self.plant, 2)):
                m.d.sync += self.weak[lane].eq(1)
            with m.If(self.marker):
                miss = ~self.seen[lane]
                m.d.sync += [recent.eq(0), missed.eq(missed << 1 | miss)]
                with m.If(miss & (sum(missed) >= MISSES_DEAD - 1) & ~planted(self.plant, 1)):
                    m.d.sync += self.dead[lane].eq(1)
            with m.If(self.found):
                m.d.sync += [missed.eq(0), self.dead[lane].eq(0)]
            with m.If(self.clear):
                m.d.sync += [recent.eq(0), self.weak[lane].eq(0)]
        strong = Signal(self.lanes)
        m.d.comb += [strong.eq(~self.weak & ~self.dead), self.mask.eq(Mux(strong.any(), strong, ~self.dead))]
        return m
