"""Map of lanes: which physical lane carries which logical one."""

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.lanes import NO_LANE, WIDTHS
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import physical_lanes

__all__ = ["LaneMap", "width_bits", "widths"]


def widths(cfg: LinkConfig) -> tuple[int, ...]:
    """Lanes that this link may have in use; entry n is 2^n."""
    return tuple(w for w in WIDTHS if w <= cfg.lanes)


def width_bits(cfg: LinkConfig) -> int:
    """Init of a width that is all lanes, as a power of two."""
    return cfg.lanes.bit_length() - 1


class LaneMap(wiring.Component):
    """Logical lane l is carried by the l-th good physical lane in ascending order.

    mask: good physical lanes, 0 means all. width: the widest of 16, 8, 4, 2, 1 for which there are enough, as a power
    of two. logical: by physical lane, NO_LANE if it carries nothing. source: by logical lane; beyond the width 0.
    Timing: registers; `of` is the mask they belong to.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.physical = physical_lanes(cfg)
        super().__init__(
            {
                "mask": In(self.physical),
                "of": Out(self.physical, init=(1 << self.physical) - 1),
                "width": Out(3, init=width_bits(cfg)),
                "logical": Out(data.ArrayLayout(unsigned(5), self.physical)),
                "source": Out(data.ArrayLayout(unsigned(5), cfg.lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self.cfg.lanes
        good = Signal(self.physical)
        m.d.comb += good.eq(Mux(self.mask.any(), self.mask, (1 << self.physical) - 1))
        below: list[Value] = []  # good lanes below each
        count: Value = Value.cast(0)
        for lane in range(self.physical):
            below.append(count)
            after = Signal(5, name=f"upto{lane}")
            m.d.comb += after.eq(count + good[lane])
            count = after
        width = Signal(3)
        used = Signal(5)
        for n, lanes_used in enumerate(widths(self.cfg)):
            with m.If(count >= lanes_used):
                m.d.comb += [width.eq(n), used.eq(lanes_used)]

        m.d.sync += [self.of.eq(good), self.width.eq(width)]
        logical = [Signal(5, name=f"logical{p}", init=p if p < lanes else NO_LANE) for p in range(self.physical)]
        source = [Signal(5, name=f"source{lane}", init=lane) for lane in range(lanes)]
        for p, place in enumerate(logical):
            m.d.sync += place.eq(Mux(good[p] & (below[p] < used), below[p], NO_LANE))
            m.d.comb += self.logical[p].eq(place)
        for lane, place in enumerate(source):
            m.d.sync += place.eq(0)
            for p in range(lane, self.physical):
                with m.If(good[p] & (below[p] == lane) & (lane < used)):
                    m.d.sync += place.eq(p)
            m.d.comb += self.source[lane].eq(place)
        return m
