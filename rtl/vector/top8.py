"""MAX8, FIND_INDEX8 and MATCH_REPLACE8: what all their lanes do in a cycle, and the lanes."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.placed import Repeated
from rtl.contract.config import Config
from rtl.contract.isa import Opcode
from rtl.vector.top8_lane import SHARED, VALUES, Top8Lane

__all__ = ["Top8"]


class Top8(wiring.Component):
    """One of the three instructions from `start` to `done`, the cycle of the last `out_valid`. `opcode` stays.

    FIND_INDEX8 and MATCH_REPLACE8 first take the 8 beats with `values`. Timing: a beat a cycle. MATCH_REPLACE8 gives
    each result a cycle after its beat. The others give 8 after the beat with `last`, one in each cycle after one with
    `gives`, for which `place` must be 1.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        wide = 32 * cfg.partitions
        super().__init__(
            {
                "start": In(1),
                "opcode": In(8),
                "valid": In(1),
                "values": In(1),
                "last": In(1),
                "x": In(wide),
                "a": In(wide),
                "place": In(1),
                "gives": Out(1),
                "out_valid": Out(1),
                "out": Out(wide),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        number = Signal(14)
        left = Signal(range(VALUES + 1))  # results to give
        replaced = Signal()
        given = Signal()
        last = Signal()
        search = Signal()
        begin = Signal()
        here = self.valid & ~self.values
        m.d.comb += [
            search.eq(here & (self.opcode != Opcode.MAX8)),
            self.gives.eq(
                (left != 0) & (self.place | fault("results of the largest eight are given without a place for them"))
            ),
            self.out_valid.eq(given | replaced),
            self.done.eq(last),
            begin.eq(self.start & ~fault("what the instruction before left is still in the registers")),
        ]
        one_by_one = self.opcode == Opcode.MATCH_REPLACE8
        m.d.sync += [
            given.eq(self.gives),
            replaced.eq(here & one_by_one),
            last.eq((here & self.last & one_by_one) | (self.gives & (left == 1))),
        ]
        with m.If(self.gives):
            m.d.sync += left.eq(left - 1)
        with m.If(here):
            m.d.sync += number.eq(number + 1)
            with m.If(self.last & ~one_by_one):
                m.d.sync += left.eq(VALUES)
        with m.If(self.start):
            m.d.sync += number.eq(fault("the position of an element is that of its neighbour"))

        count = self.cfg.partitions
        lanes = Repeated(f"plexus_top8_lanes_{count}", Top8Lane, count, shared=SHARED)
        m.submodules.lanes = lanes
        m.d.comb += [
            lanes.x.eq(self.x),
            lanes.a.eq(self.a),
            lanes.number.eq(number),
            lanes.clear.eq(begin),
            lanes.insert.eq(here & (self.opcode == Opcode.MAX8)),
            lanes.load.eq(self.valid & self.values),
            lanes.search.eq(search),
            lanes.shift.eq(self.gives),
            lanes.find.eq(self.opcode == Opcode.FIND_INDEX8),
            self.out.eq(lanes.out),
        ]
        return m
