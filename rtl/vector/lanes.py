"""The lanes: pick each partition's element, move it to its quadrant, convert it."""

from amaranth.hdl import Module, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.memory_port import QUADRANTS
from rtl.base.placed import Placed
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.numeric.convert import Convert
from rtl.vector.reader import ELEMENT

__all__ = ["Lanes"]


class Lanes(wiring.Component):
    """One element of every partition a cycle; `out` (32 bits a lane) is valid Convert.LATENCY cycles later."""

    FAULTS = {81: "quadrants are not rotated"}

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "element": In(ELEMENT),
                "sbuf": In(64 * cfg.partitions),
                "psum": In(32 * cfg.partitions),
                "out": Out(32 * cfg.partitions),
                "out_valid": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = range(self.cfg.partitions)
        width = 32 * self.cfg.partitions

        # rubbish above a 16-bit element does no harm; so the upper half of a word is chosen by one bit
        # and the odd 16 bits of it by another
        half = Signal(width)
        picked = Signal(width)
        with m.If(self.element.psum):
            m.d.comb += half.eq(self.psum)
        with m.Elif(self.element.place[2]):
            m.d.comb += [half[32 * p : 32 * p + 32].eq(self.sbuf[64 * p + 32 : 64 * p + 64]) for p in lanes]
        with m.Else():
            m.d.comb += [half[32 * p : 32 * p + 32].eq(self.sbuf[64 * p : 64 * p + 32]) for p in lanes]
        m.d.comb += picked.eq(half)
        with m.If((self.element.src != FORMATS["fp32"].code) & self.element.place[1]):
            m.d.comb += picked.eq(half >> 16)

        turned = Signal(width)
        share = width // QUADRANTS
        with m.Switch(self.element.turn):
            for turn in range(QUADRANTS):
                with m.Case(turn):
                    m.d.comb += turned.eq(picked.rotate_left(turn * share))
        with m.If(planted(self.plant, 81)):
            m.d.comb += turned.eq(picked)

        for p in lanes:
            lane = Placed("plexus_convert", Convert)
            m.submodules[f"lane_{p}"] = lane
            m.d.comb += [
                lane.x.eq(turned[32 * p : 32 * p + 32]),
                lane.src.eq(self.element.src),
                lane.dst.eq(self.element.dst),
                lane.saturate.eq(0),
                self.out[32 * p : 32 * p + 32].eq(lane.out),
            ]
        valid = Signal(Convert.LATENCY)
        m.d.sync += valid.eq((valid << 1) | self.element.valid)
        m.d.comb += self.out_valid.eq(valid[-1])
        return m
